/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the memory of other members' processes, which the kernel allows to processes of
 * one user unless a policy forbids it (process_vm_readv(2), ptrace(2)).
 */
#ifndef MMC_NODE_ATTACH_H
#define MMC_NODE_ATTACH_H

#include "node/segment.h"

/*
 * Copies `nbytes`, at least 1, from the address `from` of a member's process to `to`.
 * Returns 0, or a negative error number of the kernel's; parts of `to` may then have
 * been written. It is -ESRCH if that process has ended, even if its number is another
 * process's now.
 */
int mmc_node_attach_read(const struct mmc_node *node, uint32_t member, void *to,
			 uint64_t from, uint64_t nbytes);

#endif
