/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder sleeps in epoll on the control sockets. While a caller is inside they
 * are disarmed, or else the responder would wake for datagrams that the caller takes.
 */
#include "engine/threads/responder.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "engine/progress.h"
#include "engine/threads/lock.h"
#include "engine/threads/threads.h"
#include "engine/tracing.h"
#include "support/clock.h"
#include "support/descriptor.h"
#include "support/error.h"
#include "support/thread.h"

/*
 * How long the responder waits for a caller that has left to come back. Python calls
 * again within microseconds, unless something else keeps it busy.
 */
#define TAKEOVER_NS (2 * MMC_MS_NS)

/* Which descriptors of the attended teams wake the responder. */
enum mmc_armed {
	MMC_ARMED_NONE,	   /* none: a caller is inside */
	MMC_ARMED_CONTROL, /* those of control: no operation is pending */
	MMC_ARMED_ALL,
};

/* ---- arming ------------------------------------------------------------- */

/* Returns how many descriptors of an endpoint are watched, counted from the first. */
static unsigned nwatched(int armed, unsigned nfds, unsigned ncontrol)
{
	if (armed == MMC_ARMED_NONE)
		return 0;
	return armed == MMC_ARMED_ALL ? nfds : ncontrol;
}

/* Changes which of a team's descriptors are watched, from `before` to `after`. */
static void arm_team(struct mmc_engine *engine, struct mmc_team *team,
		     int before, int after)
{
	int fds[MMC_ENDPOINT_FDS_MAX];
	unsigned ncontrol;
	unsigned nfds =
		team->endpoint->driver->fds(team->endpoint, fds, &ncontrol);
	unsigned old = nwatched(before, nfds, ncontrol);
	unsigned new = nwatched(after, nfds, ncontrol);

	for (unsigned i = mmc_min_u32(old, new); i < mmc_max_u32(old, new);
	     i++) {
		struct epoll_event event = {
			.events = EPOLLIN,
			.data.fd = fds[i],
		};

		epoll_ctl(engine->threads->epoll_fd,
			  new > old ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fds[i],
			  &event);
	}
}

/* Changes which descriptors of all attended teams are watched. */
static void arm(struct mmc_engine *engine, int armed)
{
	struct mmc_threads *threads = engine->threads;

	if (engine->stepped || threads->armed == armed)
		return;
	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (mmc_team_is_attended(team))
			arm_team(engine, team, threads->armed, armed);
	threads->armed = armed;
}

int mmc_responder_watch(struct mmc_engine *engine, struct mmc_team *team)
{
	if (engine->stepped || !mmc_team_is_attended(team))
		return 0;
	arm_team(engine, team, MMC_ARMED_NONE, engine->threads->armed);
	/* A runner answers other ranks by itself. */
	return mmc_team_is_remote(team) ? 0 : mmc_responder_start(engine);
}

void mmc_responder_forget(struct mmc_engine *engine, struct mmc_team *team)
{
	if (!engine->stepped && mmc_team_is_attended(team))
		arm_team(engine, team, engine->threads->armed, MMC_ARMED_NONE);
}

void mmc_responder_close(struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;
	const int fds[] = { threads->epoll_fd, threads->wake_fd,
			    threads->timer_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Has the timer expire in `time_ns`, or at once if that is 0, which would disarm it. */
static void set_timer(struct mmc_engine *engine, uint64_t time_ns)
{
	const struct itimerspec timer = {
		.it_value = mmc_clock_timespec(mmc_max_u64(time_ns, 1)),
	};

	timerfd_settime(engine->threads->timer_fd, 0, &timer, NULL);
}

/*
 * Sets the timer to when something is due in an attended team, but to no less than
 * `least_ns` from now; to now if there are events already.
 */
static void set_alarm(struct mmc_engine *engine, uint64_t least_ns)
{
	uint64_t idle_ns = MMC_NEVER_NS;

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (mmc_team_is_attended(team))
			idle_ns = mmc_min_u64(idle_ns, mmc_team_idle_ns(team));
	if (mmc_engine_rearm(engine, false))
		idle_ns = least_ns = 0;
	if (idle_ns != MMC_NEVER_NS)
		set_timer(engine, mmc_max_u64(idle_ns, least_ns));
}

void mmc_responder_wake(struct mmc_engine *engine)
{
	set_timer(engine, 0);
}

void mmc_responder_stand_by(struct mmc_engine *engine)
{
	arm(engine, MMC_ARMED_NONE);
}

void mmc_responder_take_over(struct mmc_engine *engine, bool must_notify)
{
	/* Otherwise each operation would cost a timer, and wake the responder in vain. */
	for (struct mmc_team *team = engine->teams;
	     team != NULL && !must_notify; team = team->next)
		if (mmc_team_is_attended(team))
			mmc_team_settle(team);
	if (!must_notify)
		set_alarm(engine, TAKEOVER_NS);
	arm(engine, must_notify ? MMC_ARMED_ALL : MMC_ARMED_CONTROL);
}

void mmc_responder_watch_over(struct mmc_engine *engine)
{
	set_timer(engine, TAKEOVER_NS);
}

/* ---- the responder ------------------------------------------------------ */

/*
 * Makes progress, unless a caller is inside, who does so then. A caller that has armed
 * the descriptors but not given the lock yet may have been driven off its processor by
 * this very thread, which must not look at them again until the lock is given.
 */
static void respond(struct mmc_engine *engine)
{
	bool pending;

	if (!mmc_lock_try(engine)) {
		mmc_lock_await(engine);
		return;
	}
	while ((mmc_engine_progress(engine) ||
		mmc_engine_rearm(engine, false)) &&
	       !mmc_lock_is_contended(engine))
		;
	if (engine->ntraced > 0)
		mmc_tracing_note_repairs(engine);
	pending = mmc_engine_has_pending(engine);
	set_alarm(engine, 0);
	arm(engine, pending ? MMC_ARMED_ALL : MMC_ARMED_CONTROL);
	mmc_lock_give(engine);
}

/* The thread's function; `argument` is the engine. */
static void *responder(void *argument)
{
	struct mmc_engine *engine = argument;
	struct epoll_event event;

	mmc_thread_unbind();
	while (!__atomic_load_n(&engine->threads->stopping, __ATOMIC_ACQUIRE)) {
		if (epoll_wait(engine->threads->epoll_fd, &event, 1, -1) < 1)
			continue;
		if (event.data.fd == engine->threads->timer_fd)
			mmc_descriptor_drain(engine->threads->timer_fd);
		respond(engine);
	}
	return NULL;
}

int mmc_responder_start(struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;
	int error;

	if (engine->stepped || threads->responds)
		return 0;
	error = mmc_thread_start(&threads->thread, responder, engine);
	threads->responds = error == 0;
	if (error == 0)
		return 0;
	mmc_error_set("cannot start the responder thread: %s", strerror(error));
	return -MMC_EIO;
}

int mmc_responder_open(struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;
	struct epoll_event event = { .events = EPOLLIN };

	threads->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	threads->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	threads->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	event.data.fd = threads->timer_fd;
	threads->armed = MMC_ARMED_CONTROL;
	if (threads->epoll_fd >= 0 && threads->wake_fd >= 0 &&
	    threads->timer_fd >= 0 &&
	    epoll_ctl(threads->epoll_fd, EPOLL_CTL_ADD, threads->timer_fd,
		      &event) == 0)
		return 0;
	mmc_error_set("cannot open what the responder thread sleeps on: %s",
		      strerror(errno));
	mmc_responder_close(engine);
	return -MMC_EIO;
}

void mmc_responder_stop(struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;

	if (!threads->responds)
		return;
	__atomic_store_n(&threads->stopping, true, __ATOMIC_RELEASE);
	mmc_responder_wake(engine);
	pthread_join(threads->thread, NULL);
}
