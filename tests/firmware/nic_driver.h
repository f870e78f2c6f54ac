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

/* Returns whether the adapter has written an entry in this lap. */
static inline bool nic_is_written(const struct nic_completion *entry,
				  uint32_t lap)
{
	bool written = *(const volatile uint32_t *)&entry->lap == lap;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return written;
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
	uint32_t tag = immediate >> NIC_TAG_SHIFT;
	uint32_t nbytes = entry->nbytes;
	uint32_t source = entry->source;
	uint32_t lap = nic->lap;

	event->kind = MMC_EVENT_ARRIVED;
	event->nbytes = nbytes;
	event->source = source;
	event->first = immediate & ((1 << NIC_TAG_SHIFT) - 1);
	event->cookie = nic->cookies[tag & (NIC_WINDOWS - 1)];
	/* All chunks of a run are full. */
	while (++entry < end && nic_is_written(entry, lap) &&
	       entry->kind == MMC_EVENT_ARRIVED && entry->nbytes == nbytes &&
	       nbytes == NIC_CHUNK_BYTES && entry->source == source &&
	       __builtin_bswap32(entry->immediate) == ++immediate)
		;
	event->count = (uint32_t)(entry - begin);
	return entry;
}

/* Does the same for placements that have completed. */
static __attribute__((noinline)) const struct nic_completion *
nic_read_placements(const struct nic *nic, const struct nic_completion *entry,
		    const struct nic_completion *end, struct mmc_event *event)
{
	const struct nic_completion *begin = entry;
	uint64_t next = entry->cookie;
	uint32_t lap = nic->lap;

	event->kind = MMC_EVENT_PLACED;
	event->cookie = next;
	while (++entry < end && nic_is_written(entry, lap) &&
	       entry->kind == MMC_EVENT_PLACED && entry->cookie == ++next)
		;
	event->count = (uint32_t)(entry - begin);
	return entry;
}

/* Tells the adapter that the driver has read the completions before `entry`. */
static inline void nic_give_back(struct nic *nic,
				 const struct nic_completion *entry)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
	nic->read_bell += (uint32_t)(entry - nic->next);
	if (entry == nic->end) {
		entry = nic->completions;
		nic->lap++;
	}
	nic->next = entry;
}

/* Reads completions, the first of which has been written, as events. */
static __attribute__((noinline)) int
nic_read_many(struct nic *nic, struct mmc_event *events, unsigned nmax)
{
	const struct nic_completion *entry = nic->next;
	const struct nic_completion *end = entry + nic->report_max;
	struct mmc_event *event = events;

	if (end > nic->end)
		end = nic->end;
	while (entry < end && event < events + nmax &&
	       nic_is_written(entry, nic->lap)) {
		if (entry->kind == MMC_EVENT_ARRIVED) {
			entry = nic_read_arrivals(nic, entry, end, event++);
			continue;
		}
		if (entry->kind == MMC_EVENT_PLACED) {
			entry = nic_read_placements(nic, entry, end, event++);
			continue;
		}
		event->kind = MMC_EVENT_DATAGRAM;
		event->bytes = entry->head;
		event->body = entry->body;
		event->nbytes = entry->nbytes;
		event->source = entry->source;
		event++;
		entry++;
	}
	nic_give_back(nic, entry);
	return (int)(event - events);
}

static inline int nic_poll(struct mmc_endpoint *endpoint,
			   struct mmc_event *events, unsigned nmax)
{
	struct nic *nic = nic_of(endpoint);
	const struct nic_completion *entry = nic->next;
	uint32_t immediate;

	if (!nic_is_written(entry, nic->lap))
		return 0;
	if (nic->report_max > 1)
		return nic_read_many(nic, events, nmax);
	/* One alone needs none of the loops. */
	events->kind = (enum mmc_event_kind)entry->kind;
	events->nbytes = entry->nbytes;
	events->source = entry->source;
	switch (entry->kind) {
	case MMC_EVENT_ARRIVED:
		immediate = __builtin_bswap32(entry->immediate);
		events->first = immediate & ((1 << NIC_TAG_SHIFT) - 1);
		events->count = 1;
		events->cookie = nic->cookies[immediate >> NIC_TAG_SHIFT &
					      (NIC_WINDOWS - 1)];
		break;
	case MMC_EVENT_PLACED:
		events->cookie = entry->cookie;
		events->count = 1;
		break;
	default:
		events->bytes = entry->head;
		events->body = entry->body;
	}
	nic_give_back(nic, entry + 1);
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

static inline int nic_place(struct mmc_endpoint *endpoint, void *to,
			    const void *from, size_t nbytes, uint64_t cookie)
{
	struct nic *nic = nic_of(endpoint);
	struct nic_descriptor *at = &nic->placements[nic->nposted++ % NIC_RING];

	at->to = to;
	at->from = from;
	at->nbytes = nbytes;
	at->cookie = cookie;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	nic->place_bell = nic->nposted;
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
