/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each side publishes its count and then looks whether the other sleeps; whoever is about
 * to sleep says so and then looks at the other's count. All four are sequentially
 * consistent, so at least one side sees what the other has done, and no wake-up is lost.
 */
#include "drivers/udp/workers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/descriptor.h"
#include "support/error.h"
#include "support/futex.h"
#include "support/thread.h"

/* The most sockets that a worker learns of in one call. */
#define FOUND_MAX 32

/* How long a worker sleeps at most before it looks again for an empty bank. */
#define RETURN_NS MMC_S_NS

/* ---- the worker's side --------------------------------------------------- */

/* Returns the next empty bank; sleeps until there is one. NULL: the worker must stop. */
static struct mmc_udp_bank *await_bank(struct mmc_udp_worker *worker)
{
	const _Atomic bool *stopping = &worker->all->stopping;
	uint32_t nfilled = atomic_load(&worker->nfilled);
	uint32_t nreturned = atomic_load(&worker->nreturned);

	while (nfilled - nreturned == MMC_UDP_BANKS && !atomic_load(stopping)) {
		atomic_store(&worker->waits, true);
		mmc_futex_wait(&worker->nreturned, nreturned, RETURN_NS);
		nreturned = atomic_load(&worker->nreturned);
	}
	if (atomic_load(stopping))
		return NULL;
	return &worker->banks[nfilled % MMC_UDP_BANKS];
}

/* Hands the bank that was filled to the owner, and wakes it if it sleeps. */
static void publish(struct mmc_udp_worker *worker, struct mmc_udp_bank *bank)
{
	struct mmc_udp_workers *all = worker->all;

	bank->ncalls = worker->ncalls;
	worker->ncalls = 0;
	atomic_fetch_add(&worker->nfilled, 1);
	if (atomic_load(&all->armed) && atomic_exchange(&all->armed, false))
		mmc_descriptor_wake(all->news_fd);
}

/*
 * Receives once from a socket, into one bank. Returns false if the worker must stop:
 * because it was told to, or because the socket has failed.
 */
static bool receive(struct mmc_udp_worker *worker, int fd)
{
	struct mmc_udp_bank *bank = await_bank(worker);
	bool more;
	int received;

	if (bank == NULL)
		return false;
	mmc_udp_staging_reuse(&bank->staging);
	atomic_store(&worker->receives, true);
	received = mmc_udp_staging_receive(&bank->staging, fd, MMC_UDP_BATCH,
					   &more);
	worker->ncalls++;
	bank->error = received < 0 ? errno : 0;
	if (received != 0)
		publish(worker, bank);
	atomic_store(&worker->receives, false);
	return received >= 0;
}

/* The thread's function; `argument` is the worker. */
static void *work(void *argument)
{
	struct mmc_udp_worker *worker = argument;
	struct epoll_event found[FOUND_MAX];

	for (;;) {
		int count = epoll_wait(worker->epoll_fd, found, FOUND_MAX, -1);

		worker->ncalls++;
		if (atomic_load(&worker->all->stopping))
			return NULL;
		/* Sockets take turns, whatever one of them still holds. */
		for (int i = 0; i < count; i++)
			if (!receive(worker, (int)found[i].data.u32))
				return NULL;
	}
}

/* ---- the owner's side ---------------------------------------------------- */

/* Says that `what` could not be done, and why. Returns -MMC_EIO. */
static int explain(const char *what)
{
	mmc_error_set("cannot %s a thread that receives: %s", what,
		      strerror(errno));
	return -MMC_EIO;
}

/* Has epoll watch a descriptor. Returns 0, or -1 with errno set. */
static int watch(int epoll_fd, int fd, uint32_t events, uint32_t tag)
{
	struct epoll_event event = { .events = events, .data.u32 = tag };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int open_worker(struct mmc_udp_worker *worker)
{
	int stop_fd = worker->all->stop_fd;

	worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (worker->epoll_fd < 0 ||
	    watch(worker->epoll_fd, stop_fd, EPOLLIN, (uint32_t)stop_fd) != 0)
		return explain("prepare");
	for (unsigned i = 0; i < MMC_UDP_BANKS; i++)
		if (mmc_udp_staging_init(&worker->banks[i].staging,
					 MMC_UDP_TRAIN_BYTES) < 0)
			return -MMC_ENOMEM;
	return 0;
}

int mmc_udp_workers_open(struct mmc_udp_workers *workers, unsigned count,
			 int epoll_fd, uint32_t tag)
{
	int rv = 0;

	workers->items = calloc(count, sizeof(*workers->items));
	if (workers->items == NULL)
		return -MMC_ENOMEM;
	for (unsigned i = 0; i < count; i++) {
		workers->items[i].all = workers;
		workers->items[i].epoll_fd = -1;
	}
	workers->count = count;
	workers->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	workers->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	workers->unread_fd = epoll_create1(EPOLL_CLOEXEC);
	if (workers->news_fd < 0 || workers->stop_fd < 0 ||
	    workers->unread_fd < 0 ||
	    watch(epoll_fd, workers->news_fd, EPOLLIN | EPOLLET, tag) != 0)
		return explain("prepare");
	for (unsigned i = 0; i < count && rv == 0; i++)
		rv = open_worker(&workers->items[i]);
	return rv;
}

int mmc_udp_workers_assign(struct mmc_udp_workers *workers, unsigned worker,
			   int fd)
{
	int epoll_fd = workers->items[worker].epoll_fd;
	uint32_t tag = (uint32_t)fd;

	if (watch(epoll_fd, fd, EPOLLIN, tag) == 0 &&
	    watch(workers->unread_fd, fd, EPOLLIN, tag) == 0)
		return 0;
	return explain("assign a socket to");
}

int mmc_udp_workers_start(struct mmc_udp_workers *workers)
{
	int rv = 0;

	for (unsigned i = 0; i < workers->count && rv == 0; i++) {
		struct mmc_udp_worker *worker = &workers->items[i];

		rv = mmc_thread_start(&worker->thread, work, worker);
		worker->running = rv == 0;
	}
	errno = rv;
	return rv == 0 ? 0 : explain("start");
}

/* Ends a worker's thread, if it runs. */
static void stop(struct mmc_udp_worker *worker)
{
	if (!worker->running)
		return;
	/* The worker does not fall asleep over a count that has changed. */
	atomic_fetch_add(&worker->nreturned, 1);
	mmc_futex_wake(&worker->nreturned);
	pthread_join(worker->thread, NULL);
}

void mmc_udp_workers_close(struct mmc_udp_workers *workers)
{
	const int fds[] = { workers->news_fd, workers->stop_fd,
			    workers->unread_fd };

	if (workers->count == 0)
		return;
	atomic_store(&workers->stopping, true);
	mmc_descriptor_wake(workers->stop_fd);
	for (unsigned i = 0; i < workers->count; i++) {
		struct mmc_udp_worker *worker = &workers->items[i];

		stop(worker);
		if (worker->epoll_fd >= 0)
			close(worker->epoll_fd);
		for (unsigned k = 0; k < MMC_UDP_BANKS; k++)
			mmc_udp_staging_destroy(&worker->banks[k].staging);
	}
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(workers->items);
	workers->count = 0;
}

struct mmc_udp_bank *mmc_udp_worker_bank(struct mmc_udp_worker *worker)
{
	if (atomic_load(&worker->nfilled) == worker->nhandled)
		return NULL;
	return &worker->banks[worker->nhandled % MMC_UDP_BANKS];
}

bool mmc_udp_workers_hold(const struct mmc_udp_workers *workers)
{
	for (unsigned i = 0; i < workers->count; i++) {
		const struct mmc_udp_worker *worker = &workers->items[i];

		if (atomic_load(&worker->nfilled) != worker->nhandled)
			return true;
	}
	return false;
}

bool mmc_udp_workers_lag(struct mmc_udp_workers *workers)
{
	struct epoll_event event;

	workers->ncalls++;
	if (epoll_wait(workers->unread_fd, &event, 1, 0) != 0)
		return true;
	/* A datagram that has left its socket may not have reached a bank yet. */
	for (unsigned i = 0; i < workers->count; i++)
		if (atomic_load(&workers->items[i].receives))
			return true;
	return mmc_udp_workers_hold(workers);
}

bool mmc_udp_workers_arm(struct mmc_udp_workers *workers)
{
	atomic_store(&workers->armed, true);
	return mmc_udp_workers_hold(workers);
}

void mmc_udp_workers_reuse(struct mmc_udp_workers *workers)
{
	/* Awake, the owner needs no waking. */
	if (atomic_load_explicit(&workers->armed, memory_order_relaxed))
		atomic_store_explicit(&workers->armed, false,
				      memory_order_relaxed);
	for (unsigned i = 0; i < workers->count; i++) {
		struct mmc_udp_worker *worker = &workers->items[i];

		if (worker->nhandled ==
		    atomic_load_explicit(&worker->nreturned,
					 memory_order_relaxed))
			continue;
		atomic_store(&worker->nreturned, worker->nhandled);
		if (atomic_load(&worker->waits) &&
		    atomic_exchange(&worker->waits, false))
			mmc_futex_wake(&worker->nreturned);
	}
}
