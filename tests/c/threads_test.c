/* SPDX-License-Identifier: BSD-3-Clause */
/* Only the process that has made an engine may enter it. */
#include "engine/threads/threads.h"

#include <sys/wait.h>

#include "check.h"

static void a_child_may_not_enter(void)
{
	struct mmc_threads *threads = mmc_threads_new();
	int status = -1;
	pid_t child;

	if (!CHECK(threads != NULL))
		return;
	CHECK(mmc_threads_may_enter(threads));
	child = fork();
	if (child == 0)
		_exit(mmc_threads_may_enter(threads));
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	mmc_threads_free(threads);
}

CHECK_MAIN(CHECK_TEST(a_child_may_not_enter))
