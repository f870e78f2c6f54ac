/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A proxy: a process that runs the engines of other processes of the same user on its
 * node. It owns the sockets or queue pairs, receives, repairs and answers, while the
 * ranks compute. A team whose options name a proxy is opened there.
 *
 * A proxy listens on a socket of Linux's abstract namespace, whose name disappears with
 * the process, and which each network namespace has for itself. Both sides check by
 * SO_PEERCRED that the other one has the same user.
 */
#ifndef MPIMCAST_PROXY_H
#define MPIMCAST_PROXY_H

#include <stdint.h>

struct mmc_proxy;

#define MMC_PROXY_NAME_SIZE 64 /* bytes of a proxy's name, with the final 0 */

/*
 * Begins to listen for ranks under `name`, which is not empty. Returns 0;
 * -MMC_EADDRINUSE if another process has that name; -MMC_EINVAL if the name is empty or
 * too long; -MMC_ENOMEM; or -MMC_EIO.
 */
int mmc_proxy_open(const char *name, struct mmc_proxy **proxy);

/*
 * Serves ranks until mmc_proxy_stop(), until mmc_proxy_drain() and the last rank has
 * detached, or until no rank has been attached for `idle_ns`; 0: for ever. Returns 0 or
 * a negative error.
 */
int mmc_proxy_run(struct mmc_proxy *proxy, uint64_t idle_ns);

/*
 * Has mmc_proxy_run() take no more ranks, free the name for another proxy, and return
 * when the last rank has detached. A signal handler may call this.
 */
void mmc_proxy_drain(struct mmc_proxy *proxy);

/*
 * Has mmc_proxy_run() return at once: the ranks' operations in flight fail. A signal
 * handler may call this.
 */
void mmc_proxy_stop(struct mmc_proxy *proxy);

/* Frees a proxy that does not run any more. NULL is allowed. */
void mmc_proxy_close(struct mmc_proxy *proxy);

/* What runs the operations of a team. */
enum mmc_runner_kind {
	MMC_RUNNER_HOST = 0,	 /* this process's engine */
	MMC_RUNNER_PROXY = 1,	 /* a proxy of this node */
	MMC_RUNNER_FIRMWARE = 2, /* the firmware of a network adapter */
};

struct mmc_runner {
	uint32_t kind; /* enum mmc_runner_kind */
	uint32_t pid;  /* of the process that the team is attached to */
	char name[MMC_PROXY_NAME_SIZE]; /* as in the team's options */
};

/*
 * Looks for the proxy `name`. Returns 0 with `runner` written; -MMC_ENODEV if there is
 * none; -MMC_EINVAL if it speaks another version of the offload ABI, or belongs to
 * another user; or -MMC_EIO. The last three set mmc_last_error().
 */
int mmc_proxy_find(const char *name, struct mmc_runner *runner);

#endif
