/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of a test's future events, in virtual time. */
#ifndef MMC_TESTS_EVENTS_H
#define MMC_TESTS_EVENTS_H

#include "check.h"
#include "drivers/sim/heap.h"

enum event_kind {
	EVENT_DATAGRAM,
	EVENT_PLACED,
	EVENT_SENT,
	EVENT_START,
	EVENT_READ,
	EVENT_READ_MAP,
	EVENT_ALIVE, /* the transport reports that `source` exists */
	EVENT_GONE,
};

struct event {
	uint64_t at_ns;
	enum event_kind kind;
	uint32_t rank; /* the rank that it happens to */
	uint32_t source;
	uint32_t epoch;
	uint32_t index; /* as in a header; or the number of chunks sent */
	uint32_t payload_bytes;
	uint32_t value;	  /* stands for the payload */
	uint8_t *control; /* a control datagram, the bytes read, or NULL */
	uint32_t control_bytes;
	uint32_t count; /* chunks or words that are read, from `index` on */
	uint32_t step;	/* how many steps of a read are done */
	bool failed;	/* the read has failed */
};

static inline void events_push(struct mmc_heap *events,
			       const struct event *event)
{
	struct mmc_heap_item item = {
		.time_ns = event->at_ns,
		.subject = malloc(sizeof(*event)),
	};

	memcpy(item.subject, event, sizeof(*event));
	CHECK_EQ(mmc_heap_push(events, &item), 0);
}

/* Takes out the first event; the queue must not be empty. */
static inline struct event events_pop(struct mmc_heap *events)
{
	struct mmc_heap_item item;
	struct event first;

	CHECK(mmc_heap_pop(events, &item));
	memcpy(&first, item.subject, sizeof(first));
	first.at_ns = item.time_ns;
	free(item.subject);
	return first;
}

/* Returns when the first event happens, or MMC_NEVER_NS. */
static inline uint64_t events_first_ns(const struct mmc_heap *events)
{
	return events->nitems > 0 ? events->items[0].time_ns : MMC_NEVER_NS;
}

/* Puts all events off by `time_ns`. */
static inline void events_put_off(struct mmc_heap *events, uint64_t time_ns)
{
	for (size_t i = 0; i < events->nitems; i++)
		events->items[i].time_ns += time_ns;
}

static inline void events_close(struct mmc_heap *events)
{
	while (events->nitems > 0)
		free(events_pop(events).control);
	mmc_heap_free(events);
}

#endif
