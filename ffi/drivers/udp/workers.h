/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers: threads that receive for an endpoint, one for each subgroup, so that several
 * processors share the kernel's part of receiving, which is the greater part.
 *
 * A worker receives into *banks*, which it and the endpoint's owner use in a ring. Each
 * bank is of one of the two at a time: of the worker until it holds messages, and of the
 * owner until these were handled. No lock is taken, and either side sleeps only while it
 * has nothing to do: the worker while no socket is readable or no bank is empty, the
 * owner on a descriptor that mmc_udp_workers_arm() has prepared.
 *
 * The owner is whoever calls the endpoint's driver. It calls all functions of this file.
 */
#ifndef MMC_DRIVERS_UDP_WORKERS_H
#define MMC_DRIVERS_UDP_WORKERS_H

#include <pthread.h>
#include <stdatomic.h>

#include "drivers/udp/staging.h"

/* Banks of a worker. With several, it receives while the owner handles earlier ones. */
#define MMC_UDP_BANKS 4

struct mmc_udp_bank {
	struct mmc_udp_staging staging;
	uint64_t ncalls; /* the worker's system calls since its last bank */
	int error; /* the errno of a socket that has failed for good, or 0 */
};

struct mmc_udp_workers;

struct mmc_udp_worker {
	struct mmc_udp_workers *all;
	pthread_t thread;
	bool running;
	int epoll_fd;	 /* watches the worker's sockets, and what stops it */
	uint64_t ncalls; /* system calls since its last bank */
	struct mmc_udp_bank banks[MMC_UDP_BANKS];
	/* Banks so far, modulo 2^32: those that the worker has filled ... */
	_Atomic uint32_t nfilled;
	/* ... those of them that the owner has handled ... */
	uint32_t nhandled;
	/* ... and those of these that it has given back. */
	_Atomic uint32_t nreturned;
	_Atomic bool waits; /* for a bank to be given back */
	/* It may have taken from a socket what is in no full bank yet. */
	_Atomic bool receives;
};

struct mmc_udp_workers {
	struct mmc_udp_worker *items;
	unsigned count;	    /* 0: there are none */
	unsigned next;	    /* the worker whose banks are handled first */
	int news_fd;	    /* wakes the owner */
	int stop_fd;	    /* stops the workers */
	int unread_fd;	    /* readable while a worker's socket is */
	_Atomic bool armed; /* the owner sleeps, or is about to */
	_Atomic bool stopping;
	uint64_t ncalls; /* system calls of all, as far as the owner knows */
};

/*
 * Makes `count` workers, which do not run yet; the structure is all zeros before.
 * `epoll_fd`, which the owner sleeps on, then watches them, edge-triggered and by `tag`.
 * Returns 0, -MMC_ENOMEM, or -MMC_EIO with the reason set; the caller must call
 * mmc_udp_workers_close() in any case.
 */
int mmc_udp_workers_open(struct mmc_udp_workers *workers, unsigned count,
			 int epoll_fd, uint32_t tag);

/*
 * Has a worker receive from the socket `fd`, which nobody else then may. Workers must
 * not run yet. Returns 0, or -MMC_EIO with the reason set.
 */
int mmc_udp_workers_assign(struct mmc_udp_workers *workers, unsigned worker,
			   int fd);

/* Starts the workers. Returns 0, or -MMC_EIO with the reason set. */
int mmc_udp_workers_start(struct mmc_udp_workers *workers);

/* Ends the workers. Their sockets must not have been closed before. */
void mmc_udp_workers_close(struct mmc_udp_workers *workers);

/* Returns whether a worker has a full bank for the owner. */
bool mmc_udp_workers_hold(const struct mmc_udp_workers *workers);

/*
 * Returns whether datagrams that have arrived are not in the owner's hands yet, so that
 * silence proves nothing. Costs a system call.
 */
bool mmc_udp_workers_lag(struct mmc_udp_workers *workers);

/*
 * Has the owner's descriptor become readable when a worker next fills a bank. Returns
 * whether there is a full one already.
 */
bool mmc_udp_workers_arm(struct mmc_udp_workers *workers);

/*
 * Returns a worker's next full bank, or NULL if there is none. It is the same until
 * mmc_udp_worker_handled() is called.
 */
struct mmc_udp_bank *mmc_udp_worker_bank(struct mmc_udp_worker *worker);

/* Notes that all messages of the worker's next bank were taken. */
static inline void mmc_udp_worker_handled(struct mmc_udp_worker *worker)
{
	worker->nhandled++;
}

/* Gives back the banks that were handled, whose datagrams must not be used any more. */
void mmc_udp_workers_reuse(struct mmc_udp_workers *workers);

#endif
