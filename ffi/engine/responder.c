/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder sleeps in epoll on the control sockets. They are disarmed while a
 * caller is inside: the responder would wake for datagrams that the caller takes.
 */
#include "engine/responder.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "engine/lock.h"
#include "engine/progress.h"
#include "support/clock.h"
#include "support/descriptor.h"
#include "support/error.h"

/*
 * How long the responder leaves an operation to a caller that has just left: Python's
 * loop is back within microseconds unless something holds it up.
 */
#define TAKEOVER_NS (2 * MMC_MS_NS)

enum mmc_armed {
	MMC_ARMED_NONE,
	MMC_ARMED_CONTROL,
	MMC_ARMED_ALL,
};

/* ---- arming ------------------------------------------------------------- */

/* Returns how many of an endpoint's descriptors are watched, from the first on. */
static unsigned watched(int armed, unsigned nfds, unsigned ncontrol)
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
	unsigned old = watched(before, nfds, ncontrol);
	unsigned new = watched(after, nfds, ncontrol);

	for (unsigned i = mmc_min_u32(old, new); i < mmc_max_u32(old, new);
	     i++) {
		struct epoll_event event = {
			.events = EPOLLIN,
			.data.fd = fds[i],
		};

		epoll_ctl(engine->epoll_fd,
			  new > old ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fds[i],
			  &event);
	}
}

static void arm(struct mmc_engine *engine, int armed)
{
	if (engine->stepped || engine->armed == armed)
		return;
	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (mmc_team_is_attended(team))
			arm_team(engine, team, engine->armed, armed);
	engine->armed = armed;
}

void mmc_responder_watch(struct mmc_engine *engine, struct mmc_team *team)
{
	if (!engine->stepped && mmc_team_is_attended(team))
		arm_team(engine, team, MMC_ARMED_NONE, engine->armed);
}

void mmc_responder_forget(struct mmc_engine *engine, struct mmc_team *team)
{
	if (!engine->stepped && mmc_team_is_attended(team))
		arm_team(engine, team, engine->armed, MMC_ARMED_NONE);
}

static void close_fds(struct mmc_engine *engine)
{
	const int fds[] = { engine->epoll_fd, engine->wake_fd,
			    engine->timer_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/*
 * Sets the responder's timer to the next deadline, but not before `least_ns` unless
 * there are events already.
 */
static void set_alarm(struct mmc_engine *engine, uint64_t least_ns)
{
	uint64_t deadline_ns = MMC_NEVER_NS;
	struct itimerspec alarm = { 0 };

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (mmc_team_is_attended(team))
			deadline_ns = mmc_min_u64(deadline_ns,
						  mmc_team_deadline(team));
	if (mmc_engine_rearm(engine, false))
		deadline_ns = least_ns = 1;
	if (deadline_ns == MMC_NEVER_NS)
		return;
	alarm.it_value = mmc_clock_timespec(mmc_max_u64(deadline_ns, least_ns));
	timerfd_settime(engine->timer_fd, TFD_TIMER_ABSTIME, &alarm, NULL);
}

void mmc_responder_call(struct mmc_engine *engine)
{
	struct itimerspec now = { .it_value = { .tv_nsec = 1 } };

	timerfd_settime(engine->timer_fd, TFD_TIMER_ABSTIME, &now, NULL);
}

void mmc_responder_stand_by(struct mmc_engine *engine)
{
	arm(engine, MMC_ARMED_NONE);
}

void mmc_responder_take_over(struct mmc_engine *engine, bool expects)
{
	if (!expects)
		set_alarm(engine, mmc_clock_now_ns() + TAKEOVER_NS);
	arm(engine, expects ? MMC_ARMED_ALL : MMC_ARMED_CONTROL);
}

/* ---- the responder ------------------------------------------------------ */

/* Does what is due, unless a caller is inside, which then does it. */
static void respond(struct mmc_engine *engine)
{
	bool moving;

	if (!mmc_lock_try(engine))
		return;
	while ((mmc_engine_progress(engine) ||
		mmc_engine_rearm(engine, false)) &&
	       !mmc_lock_is_contended(engine))
		;
	moving = mmc_engine_is_moving(engine);
	set_alarm(engine, 1);
	arm(engine, moving ? MMC_ARMED_ALL : MMC_ARMED_CONTROL);
	mmc_lock_give(engine);
}

static void *responder(void *argument)
{
	struct mmc_engine *engine = argument;
	struct epoll_event event;

	mmc_thread_unbind();
	while (!__atomic_load_n(&engine->stopping, __ATOMIC_ACQUIRE)) {
		if (epoll_wait(engine->epoll_fd, &event, 1, -1) < 1)
			continue;
		if (event.data.fd == engine->timer_fd)
			mmc_descriptor_drain(engine->timer_fd);
		respond(engine);
	}
	return NULL;
}

/* Starts the thread with every signal blocked: signals are for the callers. */
static int start_thread(struct mmc_engine *engine)
{
	sigset_t all;
	sigset_t before;
	int rv;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rv = pthread_create(&engine->thread, NULL, responder, engine);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rv;
}

int mmc_responder_start(struct mmc_engine *engine)
{
	struct epoll_event event = { .events = EPOLLIN };

	engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	engine->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	engine->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	event.data.fd = engine->timer_fd;
	engine->armed = MMC_ARMED_CONTROL;
	if (engine->epoll_fd >= 0 && engine->wake_fd >= 0 &&
	    engine->timer_fd >= 0 &&
	    epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, engine->timer_fd,
		      &event) == 0 &&
	    start_thread(engine) == 0)
		return 0;
	mmc_error_set("the responder thread cannot start: %s", strerror(errno));
	close_fds(engine);
	return -MMC_EIO;
}

void mmc_responder_stop(struct mmc_engine *engine)
{
	__atomic_store_n(&engine->stopping, true, __ATOMIC_RELEASE);
	mmc_responder_call(engine);
	pthread_join(engine->thread, NULL);
	close_fds(engine);
}
