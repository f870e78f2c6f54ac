/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/threads/callers.h"

#include <poll.h>
#include <sched.h>

#include "engine/progress.h"
#include "engine/threads/lock.h"
#include "engine/threads/notify.h"
#include "engine/threads/responder.h"
#include "engine/threads/threads.h"
#include "engine/tracing.h"
#include "support/clock.h"
#include "support/descriptor.h"

/* Descriptors of endpoints that a leader can sleep on; the stack has room for them. */
#define POLLED_FDS_MAX 256

int mmc_engine_enter(struct mmc_engine *engine)
{
	if (!mmc_threads_may_enter(engine->threads))
		return -MMC_EFORKED;
	mmc_lock_take(engine);
	mmc_responder_stand_by(engine);
	return 0;
}

void mmc_engine_leave(struct mmc_engine *engine)
{
	/* A leader that gives the lock for a moment goes on making progress. */
	bool unattended = engine->threads->responds && !engine->threads->led;
	bool must_notify = mmc_engine_must_notify(engine);

	if (unattended)
		mmc_responder_take_over(engine, must_notify);
	mmc_lock_give(engine);
	/* A responder woken before this would find the lock taken, and sleep again. */
	if (unattended && must_notify)
		mmc_responder_wake(engine);
}

void mmc_engine_pause(struct mmc_engine *engine)
{
	if (!engine->threads->responds || engine->threads->led ||
	    mmc_engine_must_notify(engine)) {
		mmc_engine_leave(engine);
		return;
	}
	mmc_responder_watch_over(engine);
	mmc_lock_give(engine);
}

/* Returns whether a team has asked that callers poll and yield instead of sleeping. */
static bool spins(const struct mmc_engine *engine)
{
	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (team->options.spins != 0)
			return true;
	return false;
}

/*
 * Sleeps until an event arrives or another thread asks for the lock, but no longer than
 * `limit_ns`. While arrivals may gather, data does not end the sleep, unless its endpoint
 * has to be armed to signal that. Descriptors that find no room in the table do not wake
 * it: their events wait until the sleep ends, which callers limit to some milliseconds.
 */
static void sleep_for(struct mmc_engine *engine, uint64_t limit_ns)
{
	struct mmc_threads *threads = engine->threads;
	struct pollfd polled[POLLED_FDS_MAX + 1] = {
		{ .fd = threads->wake_fd, .events = POLLIN },
	};
	unsigned npolled = 1;
	uint64_t coalescing_ns = mmc_engine_coalescing_ns(engine);
	struct timespec timeout;

	if (coalescing_ns > 0)
		limit_ns = mmc_min_u64(limit_ns, coalescing_ns);
	timeout = mmc_clock_timespec(limit_ns);

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next) {
		int fds[MMC_ENDPOINT_FDS_MAX];
		unsigned ncontrol;
		unsigned nfds;

		if (!team->connected ||
		    npolled + MMC_ENDPOINT_FDS_MAX > POLLED_FDS_MAX)
			continue;
		nfds = team->endpoint->driver->fds(team->endpoint, fds,
						   &ncontrol);
		if (coalescing_ns > 0 && team->endpoint->driver->arm == NULL)
			nfds = ncontrol;
		for (unsigned i = 0; i < nfds; i++)
			polled[npolled++] = (struct pollfd){
				.fd = fds[i],
				.events = POLLIN,
			};
	}
	if (ppoll(polled, npolled, &timeout, NULL) > 0 &&
	    (polled[0].revents & POLLIN))
		mmc_descriptor_drain(threads->wake_fd);
}

/* Returns the time until `until_ns`, which may have passed. */
static uint64_t time_left_ns(uint64_t until_ns)
{
	uint64_t now_ns = mmc_clock_now_ns();

	return until_ns > now_ns ? until_ns - now_ns : 0;
}

/* Spends time in which there is nothing to do, up to `until_ns`. */
static void idle(struct mmc_engine *engine, uint64_t until_ns)
{
	if (spins(engine))
		sched_yield();
	else if (!mmc_engine_rearm(engine, true))
		sleep_for(engine, mmc_min_u64(mmc_engine_idle_ns(engine),
					      time_left_ns(until_ns)));
}

void mmc_engine_doze(struct mmc_engine *engine)
{
	if (!mmc_engine_rearm(engine, true))
		sleep_for(engine, mmc_engine_idle_ns(engine));
}

/* As idle(), and has the trace, if there is one, say whom the caller awaits. */
static void await(struct mmc_engine *engine, const struct mmc_request *request,
		  uint64_t until_ns)
{
	bool traced = request->stream != NULL &&
		      request->stream->tracing != NULL;

	if (traced)
		mmc_tracing_await(request);
	idle(engine, until_ns);
	if (traced)
		mmc_tracing_resume(request);
}

/* Says whether a caller leads, and has the followers look at their requests. */
static void announce(struct mmc_engine *engine, bool led)
{
	struct mmc_threads *threads = engine->threads;

	pthread_mutex_lock(&threads->mutex);
	threads->led = led;
	if (threads->nfollowers > 0)
		pthread_cond_broadcast(&threads->news);
	pthread_mutex_unlock(&threads->mutex);
}

/* Returns whether followers have to look at what the leader's progress has brought. */
static bool brings_news(struct mmc_engine *engine, uint32_t nfinished)
{
	return engine->nfinished != nfinished ||
	       __atomic_load_n(&engine->threads->nimpatient, __ATOMIC_RELAXED) >
		       0;
}

/*
 * Makes progress until `goal` is reached or `until_ns` is. Lets other callers have the
 * lock in between, so that they can start operations.
 */
static void lead(struct mmc_engine *engine, const struct mmc_goal *goal,
		 uint64_t until_ns)
{
	uint32_t nfinished = engine->nfinished;

	mmc_responder_stand_by(engine);
	announce(engine, true);
	while (!mmc_goal_is_reached(goal) && mmc_clock_now_ns() < until_ns) {
		if (mmc_lock_is_contended(engine)) {
			mmc_lock_give(engine);
			mmc_lock_take(engine);
		}
		if (mmc_engine_progress(engine)) {
			if (brings_news(engine, nfinished))
				announce(engine, true);
			nfinished = engine->nfinished;
		} else {
			await(engine, goal->request, until_ns);
		}
	}
	announce(engine, false);
}

/* As mmc_engine_follow(), until the monotonic clock has reached `until_ns`. */
static bool follow(struct mmc_engine *engine, const struct mmc_goal *goal,
		   uint64_t until_ns)
{
	struct mmc_threads *threads = engine->threads;
	struct timespec until = mmc_clock_timespec(until_ns);
	bool impatient = goal->has_come != NULL;
	int rv = 0;

	pthread_mutex_lock(&threads->mutex);
	threads->nfollowers++;
	__atomic_fetch_add(&threads->nimpatient, impatient, __ATOMIC_RELAXED);
	while (threads->led && !mmc_goal_is_reached(goal) && rv == 0)
		rv = pthread_cond_timedwait(&threads->news, &threads->mutex,
					    &until);
	__atomic_fetch_sub(&threads->nimpatient, impatient, __ATOMIC_RELAXED);
	threads->nfollowers--;
	pthread_mutex_unlock(&threads->mutex);
	return rv != 0 || mmc_goal_is_reached(goal);
}

bool mmc_engine_follow(struct mmc_engine *engine, const struct mmc_goal *goal,
		       uint64_t slice_ns)
{
	return mmc_threads_may_enter(engine->threads) &&
	       follow(engine, goal, mmc_clock_now_ns() + slice_ns);
}

void mmc_engine_wait_for(struct mmc_engine *engine, const struct mmc_goal *goal,
			 uint64_t slice_ns)
{
	uint64_t until_ns = mmc_clock_now_ns() + slice_ns;

	while (!mmc_goal_is_reached(goal) && mmc_clock_now_ns() < until_ns) {
		if (!engine->threads->led) {
			lead(engine, goal, until_ns);
			return;
		}
		mmc_lock_give(engine);
		follow(engine, goal, until_ns);
		mmc_lock_take(engine);
	}
}
