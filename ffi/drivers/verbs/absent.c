/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the driver in a library that was built without RDMA. */
#include "drivers/verbs/verbs.h"
#include "support/error.h"

static int absent(void)
{
	mmc_error_set("this build has no RDMA, because rdma-core's headers "
		      "were missing: install mpimcast's wheel, or the headers "
		      "(libibverbs-dev and librdmacm-dev, or rdma-core-devel) "
		      "and build mpimcast again");
	return -MMC_ENODEV;
}

int mmc_verbs_list(struct mmc_device *found, uint32_t nmax, uint32_t *nfound)
{
	(void)found, (void)nmax, (void)nfound;
	return absent();
}

int mmc_verbs_device(const char *devices, uint32_t local_rank,
		     struct mmc_device *found)
{
	(void)devices, (void)local_rank, (void)found;
	return absent();
}

uint32_t mmc_verbs_chunk_bytes(const struct mmc_device *device,
			       uint32_t checksum)
{
	(void)device, (void)checksum;
	return 0;
}

int mmc_verbs_open(const struct mmc_team_options *options,
		   uint32_t *buffer_bytes, struct mmc_endpoint **endpoint)
{
	(void)options, (void)buffer_bytes, (void)endpoint;
	return absent();
}
