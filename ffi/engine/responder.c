/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder sleeps in epoll on the control sockets. They are disarmed while
 * a caller is inside: it would wake for datagrams that the caller takes.
 */
#include "engine/callers.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "drivers/error.h"
#include "engine/notify.h"
#include "engine/progress.h"

/*
 * How long the responder leaves an operation to a caller that has just gone
 * out: Python's loop is back within microseconds unless something holds it up.
 */
#define TAKEOVER_NS (2 * MMC_MS_NS)

#define POLLED_FDS_MAX 256

enum mmc_armed {
	MMC_ARMED_NONE,
	MMC_ARMED_CONTROL,
	MMC_ARMED_ALL,
};

uint64_t mmc_engine_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MMC_S_NS + (uint64_t)now.tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / MMC_S_NS),
				  .tv_nsec = (long)(ns % MMC_S_NS) };
}

/* ---- arming ------------------------------------------------------------- */

/* The number of an endpoint's descriptors that are watched, from the first. */
static unsigned watched(int armed, unsigned nfds, unsigned ncontrol)
{
	if (armed == MMC_ARMED_NONE)
		return 0;
	return armed == MMC_ARMED_ALL ? nfds : ncontrol;
}

/* Changes what is watched of a team from `before` to `after`. */
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

/* Whether the responder looks after a team. */
static bool is_attended(const struct mmc_team *team)
{
	return team->connected && !team->options.unattended;
}

static void arm(struct mmc_engine *engine, int armed)
{
	if (engine->stepped || engine->armed == armed)
		return;
	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (is_attended(team))
			arm_team(engine, team, engine->armed, armed);
	engine->armed = armed;
}

void mmc_responder_watch(struct mmc_engine *engine, struct mmc_team *team)
{
	if (!engine->stepped && is_attended(team))
		arm_team(engine, team, MMC_ARMED_NONE, engine->armed);
}

void mmc_responder_forget(struct mmc_engine *engine, struct mmc_team *team)
{
	if (!engine->stepped && is_attended(team))
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

/* ---- ownership ---------------------------------------------------------- */

static void wake(int fd)
{
	uint64_t one = 1;
	ssize_t rv = write(fd, &one, sizeof(one));

	/* A full counter is readable already. */
	(void)rv;
}

static void drain(int fd)
{
	uint64_t count;
	ssize_t rv = read(fd, &count, sizeof(count));

	(void)rv;
}

static bool is_owned(const struct mmc_engine *engine)
{
	return engine->serving != engine->next_ticket;
}

/* Under the lock, but the owner looks without it whether others wait. */
static uint64_t take_ticket(struct mmc_engine *engine)
{
	return __atomic_fetch_add(&engine->next_ticket, 1, __ATOMIC_RELAXED);
}

/* Becomes the owner after all who came before, waking the one that polls. */
static void own(struct mmc_engine *engine)
{
	uint64_t ticket;
	bool owned;

	pthread_mutex_lock(&engine->lock);
	owned = is_owned(engine);
	ticket = take_ticket(engine);
	/* Not sooner: the owner would see nobody waiting, and sleep again. */
	if (owned && !engine->stepped)
		wake(engine->wake_fd);
	while (engine->serving != ticket)
		pthread_cond_wait(&engine->handover, &engine->lock);
	pthread_mutex_unlock(&engine->lock);
}

/* Becomes the owner if there is none, not even one that will be back at once. */
static bool try_own(struct mmc_engine *engine)
{
	bool free;

	pthread_mutex_lock(&engine->lock);
	free = !is_owned(engine) && !engine->moved;
	if (free)
		take_ticket(engine);
	pthread_mutex_unlock(&engine->lock);
	return free;
}

static void disown(struct mmc_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	engine->serving++;
	if (is_owned(engine))
		pthread_cond_broadcast(&engine->handover);
	pthread_mutex_unlock(&engine->lock);
}

/* Whether another thread wants in. */
static bool contended(struct mmc_engine *engine)
{
	return __atomic_load_n(&engine->next_ticket, __ATOMIC_RELAXED) -
		       engine->serving >
	       1;
}

int mmc_engine_enter(struct mmc_engine *engine)
{
	if (getpid() != engine->pid)
		return -MMC_EFORKED;
	own(engine);
	arm(engine, MMC_ARMED_NONE);
	return 0;
}

/*
 * Has the endpoints, all or those the responder looks after, tell by their
 * descriptors of what comes from now on. Returns
 * whether something has come already, of which they would not tell.
 */
static bool rouse(struct mmc_engine *engine, bool all)
{
	bool roused = false;

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next) {
		const struct mmc_driver *driver = team->endpoint->driver;

		if ((all ? team->connected : is_attended(team)) &&
		    driver->arm != NULL)
			roused |= driver->arm(team->endpoint);
	}
	return roused;
}

/*
 * The responder sleeps until the next deadline, but not before `least_ns` unless
 * something has come.
 */
static void set_alarm(struct mmc_engine *engine, uint64_t least_ns)
{
	uint64_t deadline_ns = MMC_NEVER_NS;
	struct itimerspec alarm = { 0 };

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (is_attended(team))
			deadline_ns = mmc_min_u64(deadline_ns,
						  mmc_team_deadline(team));
	if (rouse(engine, false))
		deadline_ns = least_ns = 1;
	if (deadline_ns == MMC_NEVER_NS)
		return;
	alarm.it_value = timespec_of(mmc_max_u64(deadline_ns, least_ns));
	timerfd_settime(engine->timer_fd, TFD_TIMER_ABSTIME, &alarm, NULL);
}

/* Has the responder look as soon as it can. */
static void call_responder(struct mmc_engine *engine)
{
	struct itimerspec now = { .it_value = { .tv_nsec = 1 } };

	timerfd_settime(engine->timer_fd, TFD_TIMER_ABSTIME, &now, NULL);
}

void mmc_engine_leave(struct mmc_engine *engine)
{
	bool idle = !engine->stepped && !engine->moved;
	bool expects = mmc_engine_expects(engine);

	if (idle && !expects)
		set_alarm(engine, mmc_engine_clock_ns() + TAKEOVER_NS);
	if (idle)
		arm(engine, expects ? MMC_ARMED_ALL : MMC_ARMED_CONTROL);
	disown(engine);
	/* Not before: it would find an owner, and sleep again. */
	if (idle && expects)
		call_responder(engine);
}

/* ---- the responder ------------------------------------------------------ */

/* Does what is due, unless a caller is inside, who then does it. */
static void respond(struct mmc_engine *engine)
{
	bool moving;

	if (!try_own(engine))
		return;
	while ((mmc_engine_progress(engine) || rouse(engine, false)) &&
	       !contended(engine))
		;
	moving = mmc_engine_is_moving(engine);
	set_alarm(engine, 1);
	arm(engine, moving ? MMC_ARMED_ALL : MMC_ARMED_CONTROL);
	disown(engine);
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
			drain(engine->timer_fd);
		respond(engine);
	}
	return NULL;
}

/* A new thread begins with every signal blocked: they are for the callers. */
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
	call_responder(engine);
	pthread_join(engine->thread, NULL);
	close_fds(engine);
}

/* ---- a caller's loop ---------------------------------------------------- */

/* Whether callers keep polling, giving way to others, instead of sleeping. */
static bool spins(const struct mmc_engine *engine)
{
	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (team->options.spins != 0)
			return true;
	return false;
}

/* Sleeps until something has come, `until_ns`, or another thread wants in. */
static void sleep_until(struct mmc_engine *engine, uint64_t until_ns)
{
	struct pollfd polled[POLLED_FDS_MAX + 1] = {
		{ .fd = engine->wake_fd, .events = POLLIN },
	};
	unsigned npolled = 1;
	uint64_t now_ns = mmc_engine_clock_ns();
	struct timespec timeout =
		timespec_of(until_ns > now_ns ? until_ns - now_ns : 0);

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
		for (unsigned i = 0; i < nfds; i++)
			polled[npolled++] = (struct pollfd){
				.fd = fds[i],
				.events = POLLIN,
			};
	}
	if (ppoll(polled, npolled, &timeout, NULL) > 0 &&
	    (polled[0].revents & POLLIN))
		drain(engine->wake_fd);
}

/* Tells callers that wait for it that there is news. */
static void announce(struct mmc_engine *engine, bool moved)
{
	pthread_mutex_lock(&engine->lock);
	engine->moved = moved;
	if (engine->nfollowers > 0)
		pthread_cond_broadcast(&engine->news);
	pthread_mutex_unlock(&engine->lock);
}

/*
 * Moves everything on. Others may come in between, to start operations: those
 * that then wait for them follow.
 */
static void lead(struct mmc_engine *engine, const struct mmc_request *request,
		 uint64_t until_ns)
{
	uint32_t nfinished = engine->nfinished;

	arm(engine, MMC_ARMED_NONE);
	announce(engine, true);
	while (!mmc_request_over(request) && mmc_engine_clock_ns() < until_ns) {
		if (contended(engine)) {
			disown(engine);
			own(engine);
		}
		if (mmc_engine_progress(engine)) {
			if (engine->nfinished != nfinished)
				announce(engine, true);
			nfinished = engine->nfinished;
		} else if (spins(engine)) {
			sched_yield();
		} else if (!rouse(engine, true)) {
			sleep_until(engine,
				    mmc_min_u64(mmc_engine_deadline(engine),
						until_ns));
		}
	}
	announce(engine, false);
}

bool mmc_engine_follow(struct mmc_engine *engine,
		       const struct mmc_request *request, uint64_t until_ns)
{
	struct timespec until = timespec_of(until_ns);
	int rv = 0;

	if (getpid() != engine->pid)
		return false;
	pthread_mutex_lock(&engine->lock);
	engine->nfollowers++;
	while (engine->moved && !mmc_request_over(request) && rv == 0)
		rv = pthread_cond_timedwait(&engine->news, &engine->lock,
					    &until);
	engine->nfollowers--;
	pthread_mutex_unlock(&engine->lock);
	return rv != 0 || mmc_request_over(request);
}

void mmc_engine_run(struct mmc_engine *engine,
		    const struct mmc_request *request, uint64_t until_ns)
{
	while (!mmc_request_over(request) && mmc_engine_clock_ns() < until_ns) {
		if (!engine->moved) {
			lead(engine, request, until_ns);
			return;
		}
		disown(engine);
		mmc_engine_follow(engine, request, until_ns);
		own(engine);
	}
}
