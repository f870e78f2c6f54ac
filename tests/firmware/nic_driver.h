/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver of the adapters of nic.h: what a firmware has to run for each datagram. It
 * reads completions from a ring, and gives them back; writes a descriptor of each payload
 * that is to be placed, and rings a bell for it.
 */
#ifndef MMC_TESTS_FIRMWARE_NIC_DRIVER_H
#define MMC_TESTS_FIRMWARE_NIC_DRIVER_H

#include "drivers/predictor.h"
#include "nic.h"

static inline uint64_t nic_now_ns(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	return nic_time_ns;
}

static inline void nic_address(struct mmc_endpoint *endpoint, uint8_t *address)
{
	*address = (uint8_t)nic_of(endpoint)->rank;
}

static inline int nic_connect(struct mmc_endpoint *endpoint,
			      const uint8_t *addresses)
{
	(void)endpoint;
	(void)addresses;
	return 0;
}

/* Returns the mark of a completion: that of an earlier lap unless the adapter has written it. */
static inline uint64_t nic_mark(const struct nic_completion *entry)
{
	uint64_t mark = *(const volatile uint64_t *)&entry->mark;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return mark;
}

/*
 * Reads the completion that a chunk has arrived, and those behind it before `end` that go
 * on, as one event. Returns where others begin.
 */
static inline const struct nic_completion *
nic_read_arrivals(const struct nic *nic, const struct nic_completion *entry,
		  const struct nic_completion *end, struct mmc_event *event)
{
	const struct nic_completion *begin = entry;
	uint32_t immediate = __builtin_bswap32(entry->immediate);
	uint64_t mark = entry->mark;
	uint32_t nbytes = entry->nbytes;
	uint32_t source = entry->source;

	event->kind = MMC_EVENT_ARRIVED;
	event->nbytes = nbytes;
	event->source = source;
	event->first = immediate & ((1 << NIC_TAG_SHIFT) - 1);
	event->cookie =
		nic->cookies[immediate >> NIC_TAG_SHIFT & (NIC_WINDOWS - 1)];
	/* All chunks of a run are full. */
	if (nbytes != NIC_CHUNK_BYTES)
		end = entry;
	while (++entry < end && nic_mark(entry) == mark &&
	       entry->nbytes == nbytes && entry->source == source &&
	       __builtin_bswap32(entry->immediate) == ++immediate)
		;
	event->count = (uint32_t)(entry - begin);
	return entry;
}

/*
 * Reads the completion of a datagram, and those of others behind it before `end`. Returns where
 * there are none.
 */
static inline const struct nic_completion *
nic_read_datagrams(const struct nic_completion *entry,
		   const struct nic_completion *end, struct mmc_event *event)
{
	uint64_t mark = entry->mark;

	do {
		event->kind = MMC_EVENT_DATAGRAM;
		event->bytes = entry->head;
		event->body = entry->body;
		event->nbytes = entry->nbytes;
		event->source = entry->source;
		event++;
	} while (++entry < end && nic_mark(entry) == mark);
	return entry;
}

/* Tells the adapter that the driver has read the `nread` completions before `entry`. */
static inline void nic_give_back(struct nic *nic,
				 const struct nic_completion *entry,
				 uint32_t nread)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
	nic->read_bell += nread;
	if (entry == nic->end) {
		entry = nic->completions;
		nic->lap++;
	}
	nic->next = entry;
}

/* Reads that the payloads of the next gather are in their places. */
static inline void nic_read_placed(struct nic *nic, struct mmc_event *event)
{
	const struct nic_gather *gather =
		&nic->gathers[nic->ntold++ % NIC_RING];

	event->kind = MMC_EVENT_PLACED;
	event->cookie = gather->cookie;
	event->count = gather->count;
	nic->slot_bell = gather->nslots;
}

/* Does so if that completion comes alone. */
static __attribute__((noinline)) int
nic_read_placed_alone(struct nic *nic, struct mmc_event *event)
{
	nic_read_placed(nic, event);
	nic_give_back(nic, nic->next + 1, 1);
	return 1;
}

/* Finds nothing. While nothing is to be placed, no slot is needed of those read long ago. */
static __attribute__((noinline)) int nic_find_nothing(struct nic *nic)
{
	if (nic->ntold == nic->nposted)
		nic->slot_bell = nic->ntaken - MMC_EVENTS_MAX;
	return 0;
}

/* Reads completions, the first of which has been written, as events. */
static __attribute__((noinline)) int
nic_read_many(struct nic *nic, struct mmc_event *events, unsigned nmax)
{
	const struct nic_completion *entry = nic->next;
	const struct nic_completion *end =
		entry + mmc_min_u32(nmax, nic->report_max);
	struct mmc_event *event = events;
	uint64_t mark = nic_mark(entry);
	uint32_t lap = (uint32_t)(mark >> 32);

	if (end > nic->end)
		end = nic->end;
	do {
		if (mark == NIC_MARK(lap, MMC_EVENT_ARRIVED)) {
			entry = nic_read_arrivals(nic, entry, end, event++);
		} else if (mark == NIC_MARK(lap, MMC_EVENT_PLACED)) {
			nic_read_placed(nic, event++);
			entry++;
		} else {
			const struct nic_completion *first = entry;

			entry = nic_read_datagrams(entry, end, event);
			event += entry - first;
			nic->ntaken += (uint32_t)(entry - first);
		}
	} while (entry < end && (mark = nic_mark(entry)) >> 32 == lap);
	nic_give_back(nic, entry, (uint32_t)(entry - nic->next));
	return (int)(event - events);
}

static inline int nic_poll(struct mmc_endpoint *endpoint,
			   struct mmc_event *events, unsigned nmax)
{
	struct nic *nic = nic_of(endpoint);
	const struct nic_completion *entry = nic->next;
	uint64_t mark;
	uint32_t immediate;

	mark = nic_mark(entry);
	if (mark >> 32 != nic->lap)
		return nic_find_nothing(nic);
	if (nic->report_max > 1)
		return nic_read_many(nic, events, nmax);
	/* Single completions skip the loops of runs, since this path counts instructions. */
	if ((uint32_t)mark == MMC_EVENT_PLACED)
		return nic_read_placed_alone(nic, events);
	events->kind = (enum mmc_event_kind)mark;
	events->nbytes = entry->nbytes;
	events->source = entry->source;
	if ((uint32_t)mark == MMC_EVENT_ARRIVED) {
		immediate = __builtin_bswap32(entry->immediate);
		events->first = immediate & ((1 << NIC_TAG_SHIFT) - 1);
		events->count = 1;
		events->cookie = nic->cookies[immediate >> NIC_TAG_SHIFT &
					      (NIC_WINDOWS - 1)];
	} else {
		nic->ntaken++;
		events->bytes = entry->head;
		events->body = entry->body;
	}
	nic_give_back(nic, entry + 1, 1);
	return 1;
}

/* Only the harness's sender fills the queue; for it the adapter works at once. */
static __attribute__((cold)) int nic_send(struct mmc_endpoint *endpoint,
					  const struct mmc_parcel *parcels,
					  unsigned nparcels)
{
	struct nic *nic = nic_of(endpoint);

	for (unsigned i = 0; i < nparcels; i++) {
		const struct mmc_parcel *parcel = &parcels[i];
		uint32_t at = nic->nqueued % MMC_BATCH_DATAGRAMS_MAX;
		uint32_t rest = parcel->head_bytes - MMC_HEADER_BYTES;
		struct nic_slot *slot = &nic->sending[at];

		if (nic->nqueued - nic->nsent == MMC_BATCH_DATAGRAMS_MAX)
			nic_work(nic);
		memcpy(slot->head, parcel->head, MMC_HEADER_BYTES);
		memcpy(slot->body, parcel->head + MMC_HEADER_BYTES, rest);
		if (parcel->body_bytes > 0)
			memcpy(slot->body + rest, parcel->body,
			       parcel->body_bytes);
		nic->sending_bytes[at] = rest + parcel->body_bytes;
		nic->nqueued++;
	}
	return 0;
}

/*
 * Has the payloads of a run placed by one descriptor. The engine has no more events than
 * MMC_EVENTS_MAX in hand, and payloads are placed in order: so once this run is in its place,
 * nobody needs a slot that was read of before those events.
 */
static __attribute__((noinline)) int
nic_place(struct mmc_endpoint *endpoint, void *to,
	  const struct mmc_event *datagrams, uint32_t ndatagrams,
	  uint32_t head_bytes, uint64_t cookie)
{
	struct nic *nic = nic_of(endpoint);
	struct nic_gather *gather = &nic->gathers[nic->nposted % NIC_RING];
	struct nic_source *source = gather->sources;
	const struct mmc_event *end = datagrams + ndatagrams;

	/* The engine may keep a payload in memory of its own, but never a run. */
	if (!nic_is_received(nic, datagrams->body)) {
		memcpy(to, datagrams->body, datagrams->nbytes - head_bytes);
		return 0;
	}
	gather->to = to;
	gather->cookie = cookie;
	gather->count = ndatagrams;
	gather->nslots = nic->ntaken - MMC_EVENTS_MAX;
	do {
		source->bytes = datagrams->body;
		source->nbytes = datagrams->nbytes - head_bytes;
		source++;
	} while (++datagrams < end);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	nic->place_bell = ++nic->nposted;
	return -MMC_EAGAIN;
}

static inline int nic_begin(struct mmc_endpoint *endpoint,
			    const struct mmc_predictor *predictor)
{
	struct nic *nic = nic_of(endpoint);
	uint32_t epoch = predictor->header.epoch;

	nic->windows[epoch % NIC_WINDOWS] = (struct nic_window){
		.tag = __builtin_bswap32(NIC_TAG(epoch)),
		.memory = predictor->memory,
	};
	nic->cookies[epoch % NIC_WINDOWS] = predictor->cookie;
	return 0;
}

static inline int nic_end(struct mmc_endpoint *endpoint, bool forget)
{
	struct nic *nic = nic_of(endpoint);

	(void)forget;
	for (uint32_t i = 0; i < NIC_WINDOWS; i++)
		nic->windows[i].tag = UINT32_MAX;
	return 0;
}

static inline int nic_register(struct mmc_endpoint *endpoint,
			       const void *memory, size_t nbytes,
			       struct mmc_region *region)
{
	(void)endpoint;
	(void)memory;
	(void)nbytes;
	region->handle = NULL;
	return 0;
}

static inline void nic_deregister(struct mmc_endpoint *endpoint,
				  struct mmc_region *region)
{
	(void)endpoint;
	(void)region;
}

static inline void nic_close(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
}

/* The driver of a rank whose core copies payloads; others have more functions. */
static const struct mmc_driver nic_driver = {
	.name = "nic",
	.now_ns = nic_now_ns,
	.address = nic_address,
	.connect = nic_connect,
	.poll = nic_poll,
	.send = nic_send,
	.close = nic_close,
};

#endif
