/* SPDX-License-Identifier: BSD-3-Clause */
/* A forked process has another generation than its parent, and than its own child. */
#include "support/fork.h"

#include <sys/wait.h>

#include "check.h"

/* Forks a child that checks its generation, and its own child's; returns its status. */
static int fork_and_check(uint32_t expected, int depth)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		bool right = mmc_fork_generation() == expected;

		if (depth > 1)
			right &= fork_and_check(expected + 1, depth - 1) == 0;
		_exit(!right);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void each_fork_counts(void)
{
	uint32_t mine = mmc_fork_generation();

	CHECK_EQ(fork_and_check(mine + 1, 3), 0);
	CHECK_EQ(fork_and_check(mine + 1, 1), 0);
	CHECK_EQ(mmc_fork_generation(), mine);
}

CHECK_MAIN(CHECK_TEST(each_fork_counts))
