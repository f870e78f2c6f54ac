/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells a child of fork() from the process that it was forked from, without a call. */
#ifndef MMC_SUPPORT_FORK_H
#define MMC_SUPPORT_FORK_H

#include <stdint.h>

/*
 * Returns how many forks lie between this process and the one that first called this:
 * whoever owns something keeps the number, and finds another one in a child. Children
 * of vfork() and posix_spawn(), which run nothing of this library, are not counted.
 */
uint32_t mmc_fork_generation(void);

#endif
