/* SPDX-License-Identifier: BSD-3-Clause */
/* Who sleeps on a word sleeps while it stays as it is, and is woken in any process. */
#include "support/futex.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

enum { NSLEEPERS = 4, NROUNDS = 2000 };

/* Longer than any test may take: only a wake-up ends such a sleep. */
#define LONG_NS (3600 * MMC_S_NS)

static _Atomic uint32_t word;

static void another_value_lets_nobody_sleep(void)
{
	atomic_store(&word, 5);
	mmc_futex_wait(&word, 4, LONG_NS);
	mmc_futex_wait(&word, 6, LONG_NS);
}

static void a_sleep_ends_after_its_limit(void)
{
	uint64_t begin_ns = mmc_clock_now_ns();

	atomic_store(&word, 5);
	while (mmc_clock_now_ns() - begin_ns < 3 * MMC_MS_NS)
		mmc_futex_wait(&word, 5, MMC_MS_NS);
	mmc_futex_wait(&word, 5, 0);
}

/* Sleeps until the word is no longer 0. */
static void *sleep_on_zero(void *argument)
{
	while (atomic_load(&word) == 0)
		mmc_futex_wait(&word, 0, LONG_NS);
	return argument;
}

static void one_call_wakes_all_threads(void)
{
	pthread_t threads[NSLEEPERS];

	atomic_store(&word, 0);
	for (int i = 0; i < NSLEEPERS; i++)
		pthread_create(&threads[i], NULL, sleep_on_zero, NULL);
	usleep(5000);
	atomic_store(&word, 1);
	mmc_futex_wake(&word);
	for (int i = 0; i < NSLEEPERS; i++)
		pthread_join(threads[i], NULL);
}

/* Counts `turn` up whenever it is even, and sleeps while it is odd. */
static void take_even_turns(_Atomic uint32_t *turn)
{
	uint32_t now;

	while ((now = atomic_load(turn)) < NROUNDS) {
		if (now % 2 != 0) {
			mmc_futex_wait(turn, now, LONG_NS);
			continue;
		}
		atomic_store(turn, now + 1);
		mmc_futex_wake(turn);
	}
}

/* Two processes that map the same memory wake each other, turn by turn. */
static void processes_wake_each_other(void)
{
	_Atomic uint32_t *turn = mmap(NULL, sizeof(*turn),
				      PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t now;
	int status;
	pid_t pid;

	MMC_ASSERT(turn != MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		take_even_turns(turn);
		_exit(0);
	}
	while ((now = atomic_load(turn)) < NROUNDS) {
		if (now % 2 == 0) {
			mmc_futex_wait(turn, now, LONG_NS);
			continue;
		}
		atomic_store(turn, now + 1);
		mmc_futex_wake(turn);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	munmap((void *)turn, sizeof(*turn));
}

CHECK_MAIN(CHECK_TEST(another_value_lets_nobody_sleep),
	   CHECK_TEST(a_sleep_ends_after_its_limit),
	   CHECK_TEST(one_call_wakes_all_threads),
	   CHECK_TEST(processes_wake_each_other))
