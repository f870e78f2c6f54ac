/* SPDX-License-Identifier: BSD-3-Clause */
/* A broken invariant ends the process, in every build, and says what broke and where. */
#include <sys/wait.h>

#include "check.h"

static unsigned nevaluations;

static bool holds(bool outcome)
{
	nevaluations++;
	return outcome;
}

static void a_kept_invariant_costs_one_evaluation(void)
{
	nevaluations = 0;
	MMC_ASSERT(holds(true));
	CHECK_EQ(nevaluations, 1);
}

/* Breaks an invariant in a child; returns its status and what it printed. */
static int break_invariant(char *said, size_t said_bytes)
{
	int ends[2];
	ssize_t nread;
	int status = 0;
	pid_t child;

	CHECK_EQ(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		/* The sanitizers report aborts too; only the message matters here. */
		signal(SIGABRT, SIG_DFL);
		dup2(ends[1], STDERR_FILENO);
		MMC_ASSERT(holds(false));
		_exit(0);
	}
	close(ends[1]);
	nread = read(ends[0], said, said_bytes - 1);
	said[nread < 0 ? 0 : nread] = 0;
	close(ends[0]);
	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

static void a_broken_invariant_aborts(void)
{
	char said[512];
	int status = break_invariant(said, sizeof(said));

	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGABRT);
	CHECK(strstr(said, "mpimcast: ") != NULL);
	CHECK(strstr(said, "holds(false)") != NULL);
	CHECK(strstr(said, "assert_test.c:") != NULL);
}

CHECK_MAIN(CHECK_TEST(a_kept_invariant_costs_one_evaluation),
	   CHECK_TEST(a_broken_invariant_aborts))
