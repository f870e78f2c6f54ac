/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements the ring of mpimcast/trace.h. */
#include <mpimcast/errors.h>
#include <mpimcast/trace.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct mmc_trace_event) == 40,
	       "files of traces hold events as they are in memory");

struct mmc_trace {
	pthread_mutex_t mutex; /* streams of several engines and nodes add */
	uint64_t nadded;
	uint32_t next; /* the slot for the next event */
	uint32_t nslots;
	struct mmc_trace_event events[];
};

int mmc_trace_create(uint32_t nslots, struct mmc_trace **trace)
{
	size_t nbytes = sizeof(**trace) + nslots * sizeof((*trace)->events[0]);
	struct mmc_trace *made = malloc(nbytes);

	if (made == NULL)
		return -MMC_ENOMEM;
	/* The kernel provides the pages now, and not while operations are timed. */
	memset(made, 0, nbytes);
	made->nslots = nslots;
	pthread_mutex_init(&made->mutex, NULL);
	*trace = made;
	return 0;
}

void mmc_trace_free(struct mmc_trace *trace)
{
	pthread_mutex_destroy(&trace->mutex);
	free(trace);
}

void mmc_trace_add(struct mmc_trace *trace, const struct mmc_trace_event *event)
{
	pthread_mutex_lock(&trace->mutex);
	trace->events[trace->next] = *event;
	trace->next = trace->next + 1 < trace->nslots ? trace->next + 1 : 0;
	trace->nadded++;
	pthread_mutex_unlock(&trace->mutex);
}

uint32_t mmc_trace_read(struct mmc_trace *trace, struct mmc_trace_event *events,
			uint64_t *nadded)
{
	uint32_t next;
	uint32_t n;

	pthread_mutex_lock(&trace->mutex);
	next = trace->next;
	n = trace->nslots;
	if (trace->nadded < n) {
		n = next;
		next = 0;
	}
	/* From the oldest to the last slot, then from the first to the newest. */
	memcpy(events, trace->events + next, (n - next) * sizeof(*events));
	memcpy(events + n - next, trace->events, next * sizeof(*events));
	*nadded = trace->nadded;
	pthread_mutex_unlock(&trace->mutex);
	return n;
}
