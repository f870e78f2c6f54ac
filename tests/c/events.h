/* SPDX-License-Identifier: BSD-3-Clause */
/* The events to come in a test, in virtual time: a heap. */
#ifndef MMC_TESTS_EVENTS_H
#define MMC_TESTS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

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
	uint8_t *control; /* a control datagram, what is read, or NULL */
	uint32_t control_bytes;
	uint32_t count; /* chunks or words that are read, from `index` on */
	uint32_t step;	/* how many steps of a read are done */
	bool failed;	/* the read has failed */
};

struct events {
	struct event *items; /* a heap: parents are no later */
	uint32_t nevents;
	uint32_t items_max;
};

static inline void events_swap(struct event *a, struct event *b)
{
	struct event kept = *a;

	*a = *b;
	*b = kept;
}

static inline void events_push(struct events *events, const struct event *event)
{
	uint32_t at = events->nevents++;

	if (events->nevents > events->items_max) {
		events->items_max = 2 * events->nevents;
		events->items = realloc(events->items,
					events->items_max * sizeof(*event));
	}
	events->items[at] = *event;
	while (at > 0 &&
	       events->items[at].at_ns < events->items[(at - 1) / 2].at_ns) {
		events_swap(&events->items[at], &events->items[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
}

static inline struct event events_pop(struct events *events)
{
	struct event first = events->items[0];
	uint32_t at = 0;

	events->items[0] = events->items[--events->nevents];
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < events->nevents &&
		    events->items[child + 1].at_ns < events->items[child].at_ns)
			child++;
		if (child >= events->nevents ||
		    events->items[at].at_ns <= events->items[child].at_ns)
			return first;
		events_swap(&events->items[at], &events->items[child]);
		at = child;
	}
}

static inline void events_close(struct events *events)
{
	for (uint32_t i = 0; i < events->nevents; i++)
		free(events->items[i].control);
	free(events->items);
}

#endif
