/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread's run delay grows while others have its processor, and is its own. */
#include "support/run_delay.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"
#include "support/clock.h"
#include "support/time.h"

static _Atomic bool stopping;

/* Keeps a processor busy. */
static void *keep_busy(void *argument)
{
	while (!stopping)
		;
	return argument;
}

/* Binds this thread, and those that it creates, to one processor that it may use. */
static void share_a_processor(void)
{
	cpu_set_t all;
	cpu_set_t one;
	size_t cpu = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* Beside a busy thread on its processor, a thread that could run waits. */
static void grows_beside_a_busy_thread(void)
{
	struct mmc_run_delay before = mmc_run_delay_look();
	struct mmc_run_delay delay = { .delay_ns = 0 };
	pthread_t busy;

	if (before.thread == NULL)
		exit(77); /* the kernel counts no run delays */
	share_a_processor();
	CHECK_EQ(pthread_create(&busy, NULL, keep_busy, NULL), 0);
	do {
		CHECK(mmc_run_delay_since(&before, &delay));
	} while (delay.delay_ns < 20 * MMC_MS_NS);
	CHECK(delay.delay_ns <= delay.at_ns);
	stopping = true;
	pthread_join(busy, NULL);
}

/* Writes what is known here of another thread's look. */
static void *look_as_another(void *before)
{
	struct mmc_run_delay delay;

	CHECK(!mmc_run_delay_since(before, &delay));
	CHECK(mmc_run_delay_look().thread != NULL);
	return NULL;
}

/* Another thread's look is of no use, and a thread's file ends with it. */
static void is_a_threads_own(void)
{
	struct mmc_run_delay before = mmc_run_delay_look();
	int fd = dup(0);

	close(fd);
	for (int i = 0; i < 100; i++) {
		pthread_t other;

		CHECK_EQ(pthread_create(&other, NULL, look_as_another, &before),
			 0);
		CHECK_EQ(pthread_join(other, NULL), 0);
	}
	CHECK_EQ(dup(0), fd);
	close(fd);
}

CHECK_MAIN(CHECK_TEST(grows_beside_a_busy_thread), CHECK_TEST(is_a_threads_own))
