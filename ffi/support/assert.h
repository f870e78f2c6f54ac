/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Assertions that only a bug in this library can break: no input from the network or
 * the user may do so. They stay on in every build, whereas plain assert() would vanish
 * from wheels, which are compiled with NDEBUG.
 */
#ifndef MMC_SUPPORT_ASSERT_H
#define MMC_SUPPORT_ASSERT_H

/*
 * Reports that `expression`, at `file` and `line`, is false, and does not return.
 * support/assert.c aborts the process; a program on a bare target provides its own.
 */
_Noreturn void mmc_assert_failed(const char *expression, const char *file,
				 int line);

/* Evaluates `expression`, and calls mmc_assert_failed() if it is false. */
#define MMC_ASSERT(expression)                                                 \
	((expression) ? (void)0                                                \
		      : mmc_assert_failed(#expression, __FILE__, __LINE__))

#endif
