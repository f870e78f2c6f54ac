/* SPDX-License-Identifier: BSD-3-Clause */
/* The future of a test's virtual time: a heap of events. */
#ifndef MMC_TESTS_FUTURE_H
#define MMC_TESTS_FUTURE_H

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

struct future {
	struct event *events; /* a heap: parents are no later */
	uint32_t nevents;
	uint32_t events_max;
};

static inline void future_swap(struct event *a, struct event *b)
{
	struct event kept = *a;

	*a = *b;
	*b = kept;
}

static inline void future_push(struct future *future, const struct event *event)
{
	uint32_t at = future->nevents++;

	if (future->nevents > future->events_max) {
		future->events_max = 2 * future->nevents;
		future->events = realloc(future->events,
					 future->events_max * sizeof(*event));
	}
	future->events[at] = *event;
	while (at > 0 &&
	       future->events[at].at_ns < future->events[(at - 1) / 2].at_ns) {
		future_swap(&future->events[at], &future->events[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
}

static inline struct event future_pop(struct future *future)
{
	struct event first = future->events[0];
	uint32_t at = 0;

	future->events[0] = future->events[--future->nevents];
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < future->nevents &&
		    future->events[child + 1].at_ns <
			    future->events[child].at_ns)
			child++;
		if (child >= future->nevents ||
		    future->events[at].at_ns <= future->events[child].at_ns)
			return first;
		future_swap(&future->events[at], &future->events[child]);
		at = child;
	}
}

static inline void future_close(struct future *future)
{
	for (uint32_t i = 0; i < future->nevents; i++)
		free(future->events[i].control);
	free(future->events);
}

#endif
