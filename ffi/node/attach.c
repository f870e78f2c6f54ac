/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/attach.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "support/bits.h"
#include "support/error.h"

/* The most that one call reads: the kernel cannot be stopped in the middle of it. */
#define RUN_BYTES (UINT64_C(64) << 20)

/*
 * Reads at most `nbytes`, with the random number by which the process is known: both
 * are of the same process. Returns how many, at least 1, or a negative error number.
 */
static ssize_t read_run(const struct mmc_node_bell *bell, void *to,
			uint64_t from, uint64_t nbytes)
{
	uint64_t process = 0;
	struct iovec here[] = {
		{ .iov_base = &process, .iov_len = sizeof(process) },
		{ .iov_base = to, .iov_len = nbytes },
	};
	struct iovec there[] = {
		{ .iov_base = (void *)(uintptr_t)atomic_load(&bell->process_at),
		  .iov_len = sizeof(process) },
		{ .iov_base = (void *)(uintptr_t)from, .iov_len = nbytes },
	};
	ssize_t nread =
		process_vm_readv(atomic_load(&bell->pid), here, 2, there, 2, 0);

	if (nread < 0)
		return -errno;
	if ((size_t)nread < sizeof(process) ||
	    process != atomic_load(&bell->process))
		return -ESRCH;
	nread -= (ssize_t)sizeof(process);
	return nread > 0 ? nread : -EFAULT;
}

int mmc_node_attach_read(const struct mmc_node *node, uint32_t member, void *to,
			 uint64_t from, uint64_t nbytes)
{
	const struct mmc_node_bell *bell = &node->head->bells[member];
	uint8_t *end = to;

	while (nbytes > 0) {
		ssize_t nread = read_run(bell, end, from,
					 mmc_min_u64(nbytes, RUN_BYTES));

		if (nread < 0)
			return (int)nread;
		end += nread;
		from += (uint64_t)nread;
		nbytes -= (uint64_t)nread;
	}
	return 0;
}

int mmc_node_try_attach(const struct mmc_node *node, uint32_t *member)
{
	uint64_t process;

	for (uint32_t i = 0; i < node->nmembers; i++) {
		const struct mmc_node_bell *bell = &node->head->bells[i];
		int rv = mmc_node_attach_read(node, i, &process,
					      atomic_load(&bell->process_at),
					      sizeof(process));

		if (rv == 0)
			continue;
		*member = i;
		mmc_error_set("%s", strerror(-rv));
		return -MMC_EIO;
	}
	return 0;
}
