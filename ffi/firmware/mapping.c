/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands for files by the regions of an adapter's host, whose numbers are their
 * descriptors. There is one: all results lie in the adapter's memory.
 */
#include "engine/mapping.h"

#include "firmware/nic.h"
#include "support/error.h"

void *mmc_mapping_make(int fd, size_t nbytes)
{
	if (fd == 0 && nbytes <= mmc_nic.region_bytes)
		return mmc_nic_memory(mmc_nic.region_offset);
	mmc_error_set("an adapter uses no other memory than its own");
	return NULL;
}

int mmc_mapping_keep(int fd)
{
	(void)fd;
	return -1;
}

void mmc_mapping_end(void *bytes, size_t nbytes, int fd)
{
	(void)fd;
	(void)bytes;
	(void)nbytes;
}
