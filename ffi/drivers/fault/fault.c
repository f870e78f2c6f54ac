/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/fault/fault.h"

#include <stdlib.h>

#include "drivers/fault/held.h"
#include "drivers/fault/verdict.h"
#include "drivers/wrapper.h"
#include "support/bits.h"
#include "support/memory.h"

/* The longest time that a reordered datagram waits for later ones to pass. */
#define REORDER_NS_MAX MMC_MS_NS

/* One direction of the traffic: what is received, or what is sent. */
struct direction {
	struct mmc_fault_queue queue; /* datagrams that are held back */
	uint64_t passed;	      /* how many have passed so far */
};

struct fault {
	struct mmc_wrapper wrapper;
	uint32_t head_bytes; /* of each datagram: its header and CRC */
	struct mmc_fault_judge judge;
	struct mmc_fault_pool pool;
	struct mmc_fault_queue lent; /* delivered, valid until the next poll */
	struct direction rx;
	struct direction tx;
};

static struct fault *fault_of(struct mmc_endpoint *endpoint)
{
	return (struct fault *)endpoint;
}

/* ---- holding back -------------------------------------------------------- */

/*
 * Holds back a copy of a datagram as the verdict says, or drops it if the pool is
 * exhausted. `source` is the sender of a received datagram.
 */
static void hold(struct fault *fault, struct direction *direction,
		 const struct mmc_parcel *parcel, uint32_t source,
		 const struct mmc_fault_verdict *verdict, uint64_t now_ns)
{
	uint32_t nbytes = parcel->head_bytes + parcel->body_bytes;
	struct mmc_fault_held *held = mmc_fault_pool_take(&fault->pool, nbytes);

	if (held == NULL)
		return;
	if (parcel->head_bytes > 0)
		memcpy(held->bytes, parcel->head, parcel->head_bytes);
	if (parcel->body_bytes > 0)
		memcpy(held->bytes + parcel->head_bytes, parcel->body,
		       parcel->body_bytes);
	if (verdict->corrupt)
		held->bytes[verdict->bit / 8] ^=
			(uint8_t)(1u << verdict->bit % 8);
	held->parcel = *parcel;
	held->source = source;
	held->due_ns = now_ns + verdict->delay_ns;
	held->due_passed = UINT64_MAX;
	if (verdict->behind > 0) {
		held->due_passed = direction->passed + verdict->behind;
		held->due_ns += REORDER_NS_MAX;
	}
	mmc_fault_queue_insert(&direction->queue, held);
}

/*
 * Judges a datagram, and carries out the verdict. Returns true if the datagram passes
 * now and unchanged. Otherwise it is lost or held back; its copies are held back in any
 * case. During a stall (`stalled`) nothing passes now.
 */
static bool pass(struct fault *fault, struct direction *direction,
		 const struct mmc_parcel *parcel, uint32_t source, bool stalled,
		 uint64_t now_ns)
{
	struct mmc_fault_verdict verdict = mmc_fault_judge_datagram(
		&fault->judge, direction == &fault->tx, parcel->head,
		parcel->head_bytes, parcel->head_bytes + parcel->body_bytes);
	bool passes = !verdict.corrupt && verdict.behind == 0 &&
		      verdict.delay_ns == 0 && !stalled;

	if (verdict.lost)
		return false;
	for (uint32_t i = passes ? 1 : 0; i < verdict.ncopies; i++)
		hold(fault, direction, parcel, source, &verdict, now_ns);
	if (passes)
		direction->passed++;
	return passes;
}

/* ---- receiving ----------------------------------------------------------- */

/*
 * Writes events for datagrams that were held back and are due, behind the first
 * `nevents` events. Returns the new number of events.
 */
static unsigned deliver_due(struct fault *fault, struct mmc_event *events,
			    unsigned nevents, unsigned nmax, uint64_t now_ns)
{
	struct direction *rx = &fault->rx;

	while (nevents < nmax) {
		struct mmc_fault_held *held =
			mmc_fault_queue_due(&rx->queue, now_ns, rx->passed);

		if (held == NULL)
			break;
		rx->passed++;
		held->next = fault->lent.first;
		fault->lent.first = held;
		events[nevents++] = (struct mmc_event){
			.kind = MMC_EVENT_DATAGRAM,
			.bytes = held->bytes,
			.nbytes = held->nbytes,
			.source = held->source,
		};
	}
	return nevents;
}

/* Returns a received datagram in the form of a parcel. */
static struct mmc_parcel parcel_of(const struct fault *fault,
				   const struct mmc_event *event)
{
	struct mmc_parcel parcel = {
		.head = event->bytes,
		.head_bytes = event->nbytes,
	};

	if (event->body != NULL) {
		parcel.head_bytes =
			mmc_min_u32(fault->head_bytes, event->nbytes);
		parcel.body = event->body;
		parcel.body_bytes = event->nbytes - parcel.head_bytes;
	}
	return parcel;
}

/*
 * Returns whether an answer to an inquiry passes: it is lost with the probability of a
 * received control message.
 */
static bool answer_passes(struct fault *fault)
{
	return !mmc_fault_judge_datagram(&fault->judge, false, NULL, 0, 0).lost;
}

/*
 * Of the `count` events behind the first `nevents`, removes those that do not pass.
 * Returns the new number of events.
 */
static unsigned filter(struct fault *fault, struct mmc_event *events,
		       unsigned nevents, unsigned count, bool stalled,
		       uint64_t now_ns)
{
	unsigned end = nevents + count;

	for (unsigned i = nevents; i < end; i++) {
		struct mmc_parcel whole = parcel_of(fault, &events[i]);

		if (events[i].kind == MMC_EVENT_ALIVE ||
		    events[i].kind == MMC_EVENT_GONE) {
			if (answer_passes(fault))
				events[nevents++] = events[i];
			continue;
		}
		if (events[i].kind != MMC_EVENT_DATAGRAM ||
		    pass(fault, &fault->rx, &whole, events[i].source, stalled,
			 now_ns))
			events[nevents++] = events[i];
	}
	return nevents;
}

/* ---- sending ------------------------------------------------------------- */

/* Sends the datagrams that were held back and are due. */
static int send_due(struct fault *fault, uint64_t now_ns)
{
	struct mmc_fault_held *held;
	int rv = 0;

	while (rv == 0 &&
	       (held = mmc_fault_queue_due(&fault->tx.queue, now_ns,
					   fault->tx.passed)) != NULL) {
		held->parcel.head = held->bytes;
		held->parcel.head_bytes = held->nbytes;
		held->parcel.body = NULL;
		held->parcel.body_bytes = 0;
		rv = fault->wrapper.inner->driver->send(fault->wrapper.inner,
							&held->parcel, 1);
		fault->tx.passed++;
		mmc_fault_pool_give(&fault->pool, held);
	}
	return rv;
}

/* Sends the parcels that pass, in as few calls as possible, then what is due. */
static int fault_send(struct mmc_endpoint *endpoint,
		      const struct mmc_parcel *parcels, unsigned nparcels)
{
	struct fault *fault = fault_of(endpoint);
	struct mmc_endpoint *inner = fault->wrapper.inner;
	uint64_t now_ns = inner->driver->now_ns(inner);
	/* Parcels from this one on pass, and have not been sent yet. */
	unsigned first = 0;
	int rv = 0;

	for (unsigned i = 0; i < nparcels && rv == 0; i++) {
		if (pass(fault, &fault->tx, &parcels[i], MMC_PEER_UNKNOWN,
			 false, now_ns))
			continue;
		if (i > first)
			rv = inner->driver->send(inner, parcels + first,
						 i - first);
		first = i + 1;
	}
	if (rv == 0 && nparcels > first)
		rv = inner->driver->send(inner, parcels + first,
					 nparcels - first);
	return rv == 0 ? send_due(fault, now_ns) : rv;
}

/* ---- the driver ---------------------------------------------------------- */

/*
 * Reports datagrams that are due, then those that the inner endpoint has received, then
 * those that have become due since: every datagram that passes lets reordered ones
 * follow.
 */
static int fault_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		      unsigned nmax)
{
	struct fault *fault = fault_of(endpoint);
	struct mmc_endpoint *inner = fault->wrapper.inner;
	uint64_t now_ns = inner->driver->now_ns(inner);
	bool stalled = mmc_fault_judge_stall_end_ns(&fault->judge, now_ns) >
		       now_ns;
	unsigned nevents = 0;
	int rv;

	mmc_fault_pool_drain(&fault->pool, &fault->lent);
	rv = send_due(fault, now_ns);
	if (rv < 0)
		return rv;
	if (!stalled)
		nevents = deliver_due(fault, events, 0, nmax, now_ns);
	if (nevents == nmax)
		return (int)nevents;
	rv = mmc_wrapper_poll(&fault->wrapper, events + nevents,
			      nmax - nevents);
	if (rv < 0)
		return rv;
	nevents = filter(fault, events, nevents, (unsigned)rv, stalled, now_ns);
	if (!stalled)
		nevents = deliver_due(fault, events, nevents, nmax, now_ns);
	return (int)nevents;
}

static uint64_t fault_deadline_ns(struct mmc_endpoint *endpoint)
{
	struct fault *fault = fault_of(endpoint);
	struct mmc_endpoint *inner = fault->wrapper.inner;
	uint64_t now_ns = inner->driver->now_ns(inner);
	uint64_t stall_end_ns =
		mmc_fault_judge_stall_end_ns(&fault->judge, now_ns);
	uint64_t rx_ns = mmc_fault_queue_deadline_ns(&fault->rx.queue);
	uint64_t at_ns = mmc_fault_queue_deadline_ns(&fault->tx.queue);

	at_ns = mmc_min_u64(at_ns, mmc_max_u64(rx_ns, stall_end_ns));
	if (inner->driver->deadline_ns != NULL)
		at_ns = mmc_min_u64(at_ns, inner->driver->deadline_ns(inner));
	return at_ns;
}

static void fault_close(struct mmc_endpoint *endpoint)
{
	struct fault *fault = fault_of(endpoint);

	fault->wrapper.inner->driver->close(fault->wrapper.inner);
	mmc_fault_pool_drain(&fault->pool, &fault->lent);
	mmc_fault_pool_drain(&fault->pool, &fault->rx.queue);
	mmc_fault_pool_drain(&fault->pool, &fault->tx.queue);
	mmc_fault_pool_destroy(&fault->pool);
	free(fault);
}

int mmc_fault_wrap(const char *setting, uint32_t rank,
		   struct mmc_endpoint *inner, enum mmc_checksum checksum,
		   bool sealed, struct mmc_endpoint **endpoint)
{
	/* A seal covers as much of a datagram as a full checksum. */
	enum mmc_checksum cover = sealed ? MMC_CHECKSUM_FULL : checksum;
	struct mmc_fault_setting parsed;
	struct mmc_fault_judge judge;
	struct fault *fault;
	int rv;

	rv = mmc_fault_parse(setting, rank, &parsed);
	if (rv == 0)
		rv = mmc_fault_judge_init(&judge, &parsed, rank, cover);
	if (rv < 0)
		goto out_inner;
	if (parsed.nclauses == 0) {
		*endpoint = inner;
		return 0;
	}
	fault = calloc(1, sizeof(*fault));
	if (fault == NULL) {
		rv = -MMC_ENOMEM;
		goto out_inner;
	}
	mmc_wrapper_init(&fault->wrapper, inner);
	fault->wrapper.endpoint.control_is_reliable = false;
	fault->wrapper.driver.name = "fault";
	fault->wrapper.driver.poll = fault_poll;
	fault->wrapper.driver.send = fault_send;
	fault->wrapper.driver.deadline_ns = fault_deadline_ns;
	fault->wrapper.driver.close = fault_close;
	fault->head_bytes = MMC_HEADER_BYTES;
	if (checksum == MMC_CHECKSUM_FULL)
		fault->head_bytes += MMC_CRC_BYTES;
	fault->judge = judge;
	*endpoint = &fault->wrapper.endpoint;
	return 0;
out_inner:
	inner->driver->close(inner);
	return rv;
}
