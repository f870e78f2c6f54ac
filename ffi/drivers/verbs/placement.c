/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct placement, as drivers/placement.h describes it, by an RDMA device. */
#include <string.h>

#include "drivers/verbs/endpoint.h"
#include "support/assert.h"
#include "support/bits.h"

/*
 * A paused queue is flushed if for this long none of its slots that aim at places has
 * completed.
 */
#define FLUSH_NS (100 * MMC_MS_NS)

uint8_t *mmc_verbs_placement_take(struct mmc_verbs *verbs,
				  const struct mmc_verbs_queue *queue,
				  uint32_t slot, uint32_t source,
				  const uint8_t *head, uint32_t nbytes)
{
	struct mmc_placement *placement = queue->ring.placement;
	uint32_t index = queue->ring.placement_queue;
	uint32_t *nplugs = &placement->queues[index].nplugs;

	/* The rank's own datagrams, plugs among them, are not for the engine. */
	if (source == verbs->own.rank) {
		if (nbytes > 0)
			placement->loops = true;
		else if (*nplugs > 0)
			--*nplugs;
		nbytes = 0;
	}
	return mmc_placement_complete(placement, index, slot, source, head,
				      nbytes);
}

void mmc_verbs_placement_resume(struct mmc_verbs *verbs)
{
	for (uint32_t i = 0; i < verbs->placement.nqueues; i++)
		mmc_placement_resume(&verbs->placement, i);
}

/*
 * Resets the queue, so that no slot that was posted before is filled any more. If the
 * device refuses, fails the endpoint: the slots then still aim at places.
 */
static int flush(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue)
{
	int rv = mmc_verbs_queue_flush(queue, &verbs->port);

	if (rv < 0)
		mmc_verbs_fail(verbs, "datagram queue pair %#x: cannot reset",
			       queue->qp->qp_num);
	queue->flush_ns = 0;
	return rv;
}

/*
 * Helps to use up the slots of a paused queue that still aim at places: sends plugs,
 * and flushes the queue if these do not help in time.
 */
static void use_up(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue)
{
	struct mmc_endpoint *endpoint = &verbs->endpoint;
	struct mmc_placement_queue *receives =
		&verbs->placement.queues[queue->ring.placement_queue];
	uint64_t now_ns;

	if (!receives->paused || receives->naimed == 0) {
		queue->flush_ns = 0;
		return;
	}
	now_ns = endpoint->driver->now_ns(endpoint);
	if (queue->flush_ns == 0 || receives->naimed < queue->naimed)
		queue->flush_ns = now_ns + FLUSH_NS;
	queue->naimed = receives->naimed;
	if (now_ns >= queue->flush_ns || verbs->failure[0] != '\0') {
		flush(verbs, queue);
		return;
	}
	receives->nplugs += mmc_verbs_send_plugs(verbs, queue,
						 mmc_placement_plugs(receives));
}

unsigned mmc_verbs_placement_poll(struct mmc_verbs *verbs,
				  struct mmc_event *events, unsigned nmax)
{
	unsigned count = 0;
	uint64_t cookie;

	for (uint32_t i = 0; i < verbs->placement.nqueues; i++)
		use_up(verbs, &verbs->queues[i]);
	while (count < nmax &&
	       mmc_placement_take_settled(&verbs->placement, &cookie))
		events[count++] = (struct mmc_event){
			.kind = MMC_EVENT_PLACED,
			.cookie = cookie,
			.count = 1,
		};
	return count;
}

int mmc_verbs_place(struct mmc_endpoint *endpoint, void *to,
		    const struct mmc_event *datagrams, uint32_t ndatagrams,
		    uint32_t head_bytes, uint64_t cookie)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	const uint8_t *from = mmc_event_body(datagrams, head_bytes);
	uint32_t nbytes = datagrams->nbytes - head_bytes;

	MMC_ASSERT(ndatagrams == 1);
	if (mmc_placement_defer(&verbs->placement, to, from, nbytes, cookie))
		return -MMC_EAGAIN;
	memcpy(to, from, nbytes);
	return 0;
}

int mmc_verbs_begin_placement(struct mmc_endpoint *endpoint,
			      const struct mmc_predictor *predictor)
{
	return mmc_placement_begin(&mmc_verbs_of(endpoint)->placement,
				   predictor);
}

int mmc_verbs_end_placement(struct mmc_endpoint *endpoint, bool forget)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	int rv = 0;

	for (uint32_t i = 0; i < verbs->placement.nqueues; i++)
		if (verbs->placement.queues[i].naimed > 0 &&
		    flush(verbs, &verbs->queues[i]) < 0)
			rv = -MMC_EIO;
	mmc_placement_end(&verbs->placement, forget);
	return rv;
}

uint64_t mmc_verbs_placement_deadline_ns(struct mmc_endpoint *endpoint)
{
	const struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	uint64_t at_ns = MMC_NEVER_NS;

	for (uint32_t i = 0; i < verbs->placement.nqueues; i++)
		if (verbs->queues[i].flush_ns != 0)
			at_ns = mmc_min_u64(at_ns, verbs->queues[i].flush_ns);
	return at_ns;
}
