/* SPDX-License-Identifier: BSD-3-Clause */
/* A mapping is the file itself, and outlives the descriptor. */
#include "engine/mapping.h"

#include <mpimcast/mmc.h>
#include <sys/mman.h>

#include "check.h"

#define NBYTES 5000

static void two_mappings_are_one_memory(void)
{
	int fd = memfd_create("mapping", MFD_CLOEXEC);
	uint8_t *one;
	uint8_t *other;

	CHECK_EQ(ftruncate(fd, NBYTES), 0);
	one = mmc_mapping_make(fd, NBYTES);
	other = mmc_mapping_make(fd, NBYTES);
	close(fd);
	if (!CHECK(one != NULL && other != NULL))
		return;
	CHECK_EQ(other[NBYTES - 1], 0);
	one[NBYTES - 1] = 7;
	CHECK_EQ(other[NBYTES - 1], 7);
	mmc_mapping_end(one, NBYTES, -1);
	CHECK_EQ(other[NBYTES - 1], 7);
	mmc_mapping_end(other, NBYTES, -1);
}

static void what_is_no_file_is_refused(void)
{
	CHECK(mmc_mapping_make(-1, NBYTES) == NULL);
	CHECK(strstr(mmc_last_error(), "mmap") != NULL);
}

CHECK_MAIN(CHECK_TEST(two_mappings_are_one_memory),
	   CHECK_TEST(what_is_no_file_is_refused))
