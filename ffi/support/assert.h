/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Assertions on states that our own code must never reach. They stay on in every build:
 * plain assert() would vanish from wheels, which are compiled with NDEBUG. No input
 * that the network or the user controls may trip one.
 */
#ifndef MMC_SUPPORT_ASSERT_H
#define MMC_SUPPORT_ASSERT_H

/* Reports a broken invariant and does not return. The host provides it. */
_Noreturn void mmc_assert_failed(const char *expression, const char *file,
				 int line);

#define MMC_ASSERT(expression)                                                 \
	((expression) ? (void)0                                                \
		      : mmc_assert_failed(#expression, __FILE__, __LINE__))

#endif
