/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/sim/link.h"

#include "support/bits.h"

bool mmc_link_enter(struct mmc_link *link, uint64_t nbytes, uint64_t now_ns,
		    uint64_t *left_ns)
{
	uint64_t now_ps = now_ns * MMC_LINK_NS_PS;
	uint64_t start_ps = mmc_max_u64(link->free_ps, now_ps);

	link->entered++;
	if ((start_ps - now_ps) / link->byte_ps + nbytes > link->queue_bytes) {
		link->overflowed++;
		return false;
	}
	link->bytes += nbytes;
	link->free_ps = start_ps + nbytes * link->byte_ps;
	*left_ns = mmc_link_ps_to_ns(link->free_ps);
	return true;
}

uint64_t mmc_link_busy_ns(const struct mmc_link *link, uint64_t queue_bytes,
			  uint64_t now_ns)
{
	uint64_t allowed_ps =
		now_ns * MMC_LINK_NS_PS + queue_bytes * link->byte_ps;

	if (link->free_ps <= allowed_ps)
		return 0;
	return mmc_link_ps_to_ns(link->free_ps - allowed_ps);
}
