/* SPDX-License-Identifier: BSD-3-Clause */
/* Refuses all mappings: there are no files. */
#include "engine/mapping.h"

#include "support/error.h"

void *mmc_mapping_make(int fd, size_t nbytes)
{
	(void)fd;
	(void)nbytes;
	mmc_error_set("this processor has no files");
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
