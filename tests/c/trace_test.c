/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of a trace: what it keeps, what it drops, and many writers. */
#include <mpimcast/trace.h>
#include <pthread.h>

#include "check.h"

#define NSLOTS 8
#define NTHREADS 4
#define NEACH 20000

static struct mmc_trace *trace;
static struct mmc_trace_event events[NSLOTS];

/* Adds events whose epochs are from `first` up to `end`. */
static void add(uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		mmc_trace_add(trace, &(struct mmc_trace_event){
					     .begin_ns = 10 * i,
					     .end_ns = 10 * i + 7,
					     .epoch = i,
				     });
}

/* Checks that the trace holds the events up to `nadded`, at most NSLOTS of them. */
static void check_latest(uint32_t nadded)
{
	uint32_t nheld = nadded < NSLOTS ? nadded : NSLOTS;
	uint64_t said = 0;

	CHECK_EQ(mmc_trace_read(trace, events, &said), nheld);
	CHECK_EQ(said, nadded);
	for (uint32_t i = 0; i < nheld; i++) {
		CHECK_EQ(events[i].epoch, nadded - nheld + i);
		CHECK_EQ(events[i].begin_ns, 10 * events[i].epoch);
		CHECK_EQ(events[i].end_ns, 10 * events[i].epoch + 7);
	}
}

/* Whatever number of events is added, those read are the latest, in order. */
static void keeps_the_latest(void)
{
	for (uint32_t n = 0; n <= 3 * NSLOTS; n++) {
		CHECK_EQ(mmc_trace_create(NSLOTS, &trace), 0);
		add(0, n);
		check_latest(n);
		/* Reading changes nothing. */
		add(n, n + 1);
		check_latest(n + 1);
		mmc_trace_free(trace);
	}
}

/* A trace of one slot keeps the last event. */
static void one_slot(void)
{
	uint64_t nadded;

	CHECK_EQ(mmc_trace_create(1, &trace), 0);
	CHECK_EQ(mmc_trace_read(trace, events, &nadded), 0);
	add(0, 3);
	CHECK_EQ(mmc_trace_read(trace, events, &nadded), 1);
	CHECK_EQ(nadded, 3);
	CHECK_EQ(events[0].epoch, 2);
	mmc_trace_free(trace);
}

/* Adds events, all of whose fields follow from the thread's number and the event's. */
static void *add_many(void *argument)
{
	uint64_t thread = (uint64_t)(uintptr_t)argument;

	for (uint64_t i = 0; i < NEACH; i++)
		mmc_trace_add(trace, &(struct mmc_trace_event){
					     .begin_ns = i,
					     .end_ns = i + thread,
					     .amount = i * thread,
					     .epoch = (uint32_t)i,
					     .track = (uint16_t)thread,
				     });
	return NULL;
}

/* Checks that no event is mixed of two, and that each thread's are in order. */
static void check_whole(uint32_t n)
{
	uint64_t latest[NTHREADS + 1] = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		const struct mmc_trace_event *event = &events[i];

		if (!CHECK(event->track >= 1 && event->track <= NTHREADS))
			return;
		CHECK_EQ(event->end_ns - event->begin_ns, event->track);
		CHECK_EQ(event->amount, event->begin_ns * event->track);
		CHECK_EQ(event->epoch, event->begin_ns);
		CHECK(event->begin_ns >= latest[event->track]);
		latest[event->track] = event->begin_ns;
	}
}

/* Several threads add while another reads: each event is whole, and all are counted. */
static void many_writers(void)
{
	pthread_t threads[NTHREADS];
	uint64_t nadded = 0;

	CHECK_EQ(mmc_trace_create(NSLOTS, &trace), 0);
	for (uintptr_t i = 0; i < NTHREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, add_many,
					(void *)(i + 1)),
			 0);
	while (nadded < NTHREADS * NEACH)
		check_whole(mmc_trace_read(trace, events, &nadded));
	for (uint32_t i = 0; i < NTHREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	check_whole(mmc_trace_read(trace, events, &nadded));
	CHECK_EQ(nadded, NTHREADS * NEACH);
	mmc_trace_free(trace);
}

CHECK_MAIN(CHECK_TEST(keeps_the_latest), CHECK_TEST(one_slot),
	   CHECK_TEST(many_writers))
