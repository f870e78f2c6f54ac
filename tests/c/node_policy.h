/* SPDX-License-Identifier: BSD-3-Clause */
/* Has the kernel refuse that processes read each other's memory. */
#ifndef MMC_TESTS_NODE_POLICY_H
#define MMC_TESTS_NODE_POLICY_H

#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "support/assert.h"

enum { NOBODY = 65534 };

/*
 * From here on either this process cannot read the memory of its parent, a process of
 * root, or the parent, which is no process of root, cannot read this one's.
 */
static inline void refuse_reads(void)
{
	if (geteuid() == 0)
		MMC_ASSERT(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	else
		MMC_ASSERT(prctl(PR_SET_DUMPABLE, 0) == 0);
}

#endif
