/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress lock has one holder at a time, in the order in which threads asked. */
#include "engine/threads/lock.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check.h"
#include "lock_waiters.h"

#define NTHREADS 4
#define NTIMES 2000

static struct mmc_engine engine;
static uint64_t count; /* guarded by the lock alone */
static uint32_t order[NTHREADS];
static uint32_t norder;

static void begin(void)
{
	engine = (struct mmc_engine){ .threads = mmc_threads_new() };
	engine.threads->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	count = 0;
	norder = 0;
}

static void end(void)
{
	close(engine.threads->wake_fd);
	mmc_threads_free(engine.threads);
}

static bool is_woken(void)
{
	struct pollfd polled = { .fd = engine.threads->wake_fd,
				 .events = POLLIN };

	return poll(&polled, 1, 0) == 1;
}

static void *count_up(void *argument)
{
	(void)argument;
	for (int i = 0; i < NTIMES; i++) {
		mmc_lock_take(&engine);
		count++;
		mmc_lock_give(&engine);
	}
	return NULL;
}

static void one_holder_at_a_time(void)
{
	pthread_t threads[NTHREADS];

	begin();
	for (int i = 0; i < NTHREADS; i++)
		pthread_create(&threads[i], NULL, count_up, NULL);
	for (int i = 0; i < NTHREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(count, NTHREADS * NTIMES);
	end();
}

static void *sign(void *argument)
{
	mmc_lock_take(&engine);
	order[norder++] = *(const uint32_t *)argument;
	mmc_lock_give(&engine);
	return NULL;
}

/* Waits until `n` threads wait for the holder. */
static void await_waiters(uint64_t n)
{
	while (__atomic_load_n(&engine.threads->next_ticket, __ATOMIC_RELAXED) -
		       engine.threads->serving !=
	       n + 1)
		sched_yield();
}

static void first_come_first_served(void)
{
	pthread_t threads[NTHREADS];
	uint32_t numbers[NTHREADS];

	begin();
	mmc_lock_take(&engine);
	CHECK(!is_woken());
	CHECK(!mmc_lock_is_contended(&engine));
	for (uint32_t i = 0; i < NTHREADS; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, sign, &numbers[i]);
		await_waiters(i + 1);
		CHECK(mmc_lock_is_contended(&engine));
	}
	mmc_lock_give(&engine);
	for (uint32_t i = 0; i < NTHREADS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < NTHREADS; i++)
		CHECK_EQ(order[i], i);
	/* The threads that asked have woken the holder, which might have slept. */
	CHECK(is_woken());
	end();
}

/* The responder takes the lock only if no caller holds it or is about to retake it. */
static void trying(void)
{
	begin();
	CHECK(mmc_lock_try(&engine));
	CHECK(!mmc_lock_try(&engine));
	mmc_lock_give(&engine);
	engine.threads->led = true;
	CHECK(!mmc_lock_try(&engine));
	engine.threads->led = false;
	CHECK(mmc_lock_try(&engine));
	mmc_lock_give(&engine);
	CHECK(!is_woken());
	end();
}

static void *await(void *argument)
{
	mmc_lock_await(&engine);
	return argument;
}

/* A thread that awaits the lock sleeps until it is given, and asks nobody for it. */
static void awaiting(void)
{
	pthread_t thread;

	begin();
	mmc_lock_await(&engine);
	mmc_lock_take(&engine);
	pthread_create(&thread, NULL, await, NULL);
	await_lock_waiters(&engine, 1);
	CHECK(!mmc_lock_is_contended(&engine));
	CHECK(!is_woken());
	mmc_lock_give(&engine);
	pthread_join(thread, NULL);
	CHECK_EQ(engine.threads->nawaiting, 0);
	end();
}

CHECK_MAIN(CHECK_TEST(awaiting), CHECK_TEST(one_holder_at_a_time),
	   CHECK_TEST(first_come_first_served), CHECK_TEST(trying))
