/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library get no signal; those of the program go on getting theirs. */
#include "support/thread.h"

#include "check.h"

static sigset_t inside;

static void *look(void *argument)
{
	pthread_sigmask(SIG_SETMASK, NULL, &inside);
	return argument;
}

static void signals_are_blocked_inside(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGUSR1, SIGALRM };
	sigset_t here;
	pthread_t thread;
	void *returned;

	CHECK_EQ(mmc_thread_start(&thread, look, &inside), 0);
	pthread_join(thread, &returned);
	CHECK(returned == &inside);
	pthread_sigmask(SIG_SETMASK, NULL, &here);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		CHECK(sigismember(&inside, numbers[i]));
		CHECK(!sigismember(&here, numbers[i]));
	}
}

CHECK_MAIN(CHECK_TEST(signals_are_blocked_inside))
