/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A test program is one .c file: functions that CHECK things, and CHECK_MAIN
 * with their names. It prints what failed and a last line `N passed, N failed`,
 * and exits with 1 if anything failed. With arguments it runs the tests named.
 */
#ifndef MMC_TESTS_CHECK_H
#define MMC_TESTS_CHECK_H

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/assert.h"

/* A test that runs longer than this ends its program as failed. */
#ifdef __SANITIZE_THREAD__
#define CHECK_TIMEOUT_S 400
#else
#define CHECK_TIMEOUT_S 120
#endif

/* How many failures of one test are printed; further ones are only counted. */
#define CHECK_PRINTED_MAX 10

struct check_test {
	const char *name;
	void (*run)(void);
};

static const char *check_running = "";
static unsigned check_failures; /* of the running test */

/*
 * Each macro returns whether its check held, for loops that should end at the
 * first failure. CHECK_EQ compares integers of any type, by their value in 64
 * bits.
 */
#define CHECK(expression)                                                      \
	check_true((expression), #expression, __FILE__, __LINE__)
#define CHECK_EQ(a, b)                                                         \
	check_equal((uint64_t)(a), (uint64_t)(b), #a " == " #b, __FILE__,      \
		    __LINE__)
#define CHECK_BYTES(a, b, nbytes)                                              \
	check_true(memcmp((a), (b), (nbytes)) == 0,                            \
		   #nbytes " bytes of " #a " and " #b " are equal", __FILE__,  \
		   __LINE__)

/* Returns the seed of this run: MPIMCAST_TEST_SEED, to repeat a failed run, or 1. */
static inline uint64_t check_seed(void)
{
	const char *seed = getenv("MPIMCAST_TEST_SEED");

	return seed != NULL ? strtoull(seed, NULL, 0) : 1;
}

static inline bool check_failed(const char *what, const char *file, int line)
{
	if (check_failures++ < CHECK_PRINTED_MAX)
		fprintf(stderr, "%s:%d: %s: %s\n", file, line, check_running,
			what);
	return false;
}

static inline bool check_true(bool held, const char *what, const char *file,
			      int line)
{
	return held || check_failed(what, file, line);
}

static inline bool check_equal(uint64_t a, uint64_t b, const char *what,
			       const char *file, int line)
{
	char text[256];

	if (a == b)
		return true;
	snprintf(text, sizeof(text),
		 "%s: %" PRId64 " and %" PRId64 " (%#" PRIx64 " and %#" PRIx64
		 ")",
		 what, (int64_t)a, (int64_t)b, a, b);
	return check_failed(text, file, line);
}

/* Prints which test ended early, by functions that a signal handler may call. */
static inline void check_ended_early(const char *how)
{
	(void)!write(STDERR_FILENO, check_running, strlen(check_running));
	(void)!write(STDERR_FILENO, how, strlen(how));
}

static void check_timed_out(int number)
{
	(void)number;
	check_ended_early(": timed out\n");
	_exit(1);
}

/* After this, abort() ends the program as it would without a handler. */
static void check_aborted(int number)
{
	(void)number;
	check_ended_early(": aborted\n");
}

static inline bool check_chosen(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 2;
}

static inline int check_run(const struct check_test *tests, size_t ntests,
			    int argc, char **argv)
{
	unsigned npassed = 0;
	unsigned nfailed = 0;

	signal(SIGALRM, check_timed_out);
	signal(SIGABRT, check_aborted);
	for (size_t i = 0; i < ntests; i++) {
		if (!check_chosen(tests[i].name, argc, argv))
			continue;
		check_running = tests[i].name;
		check_failures = 0;
		alarm(CHECK_TIMEOUT_S);
		tests[i].run();
		alarm(0);
		if (check_failures == 0) {
			npassed++;
			continue;
		}
		nfailed++;
		fprintf(stderr, "FAIL %s: %u checks\n", check_running,
			check_failures);
	}
	printf("%u passed, %u failed\n", npassed, nfailed);
	return nfailed != 0 || npassed == 0;
}

#define CHECK_TEST(function)                                                   \
	{                                                                      \
		.name = #function, .run = (function)                           \
	}

/* Defines the program's main(), given a CHECK_TEST for each of its tests. */
#define CHECK_MAIN(...)                                                        \
	int main(int argc, char **argv)                                        \
	{                                                                      \
		static const struct check_test tests[] = { __VA_ARGS__ };      \
                                                                               \
		return check_run(tests, sizeof(tests) / sizeof(tests[0]),      \
				 argc, argv);                                  \
	}

#endif
