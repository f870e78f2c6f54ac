/* SPDX-License-Identifier: BSD-3-Clause */
/* A proxy, which is a thread of this process or a process of its own. */
#ifndef MMC_TESTS_PROXIES_H
#define MMC_TESTS_PROXIES_H

#include <mpimcast/mmc.h>
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static struct mmc_proxy *proxy; /* of this process; NULL: it runs in a child */
static pthread_t proxy_thread;
static pid_t proxy_pid;
static char proxy_name[MMC_PROXY_NAME_SIZE];

static inline void *run_proxy(void *argument)
{
	(void)argument;
	CHECK_EQ(mmc_proxy_run(proxy, 0), 0);
	return NULL;
}

static inline void name_proxy(void)
{
	static uint32_t nproxies;

	snprintf(proxy_name, sizeof(proxy_name), "test-%d-%u", (int)getpid(),
		 nproxies++);
}

/* Starts a proxy in a thread of this process. */
static inline void begin_proxy(void)
{
	name_proxy();
	if (!CHECK_EQ(mmc_proxy_open(proxy_name, &proxy), 0)) {
		fprintf(stderr, "%s\n", mmc_last_error());
		exit(1);
	}
	pthread_create(&proxy_thread, NULL, run_proxy, NULL);
}

/* Ends it once all its ranks have detached. */
static inline void end_proxy(void)
{
	mmc_proxy_drain(proxy);
	pthread_join(proxy_thread, NULL);
	mmc_proxy_close(proxy);
	proxy = NULL;
}

/* Starts a proxy in a child process, which is to be ended by a signal. */
static inline void fork_proxy(void)
{
	int ready[2];
	char byte;

	name_proxy();
	CHECK_EQ(pipe(ready), 0);
	proxy_pid = fork();
	if (proxy_pid == 0) {
		if (mmc_proxy_open(proxy_name, &proxy) != 0 ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		mmc_proxy_run(proxy, 0);
		_exit(0);
	}
	close(ready[1]);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

/* Kills the proxy's process, and waits until it has ended. */
static inline void kill_proxy(void)
{
	kill(proxy_pid, SIGKILL);
	waitpid(proxy_pid, NULL, 0);
}

#endif
