/* SPDX-License-Identifier: BSD-3-Clause */
/* Results, tables and bits lie in memory that a proxy maps, and no more of it than need be. */
#include "engine/remote/sharing.h"

#include <sys/mman.h>

#include "drivers/remote/endpoint.h"
#include "gathers.h"
#include "offload/meeting.h"

/* Returns how many regions of a team the proxy has, those of bounce buffers included. */
static uint32_t count_regions(const struct rank *rank)
{
	const struct mmc_remote *remote = mmc_remote_of(rank->team->endpoint);
	uint32_t count = 0;

	for (uint32_t i = 0; i < MMC_OFFLOAD_REGIONS; i++)
		count += remote->is_shared[i];
	return count;
}

/* Into memory that can be shared results arrive without a bounce. */
static void shared_results_arrive_in_place(void)
{
	struct mmc_operation operation;
	uint8_t *memory;
	void *other;
	int fd;

	begin_job();
	fd = mmc_meeting_create(4 * NBYTES, &other);
	CHECK_EQ(mmc_memory_map(job.ranks[0].engine, fd, 4 * NBYTES,
				(void **)&memory),
		 0);
	close(fd);
	for (uint8_t round = 1; round < 4; round++) {
		operation = gather(0, memory + NBYTES + round, round);
		CHECK_EQ(begin(&job.ranks[0], &operation), MMC_EAGAIN);
		operation = gather(1, results[1], (uint8_t)(round + 9));
		CHECK_EQ(begin(&job.ranks[1], &operation), MMC_EAGAIN);
		CHECK_EQ(finish(&job.ranks[0]), 0);
		CHECK_EQ(finish(&job.ranks[1]), 0);
		CHECK_EQ(memory[2 * NBYTES + round], round + 9);
		CHECK_EQ(memory[NBYTES + round - 1], round - 1);
		/* The whole memory is one region, and there is no other. */
		CHECK_EQ(count_regions(&job.ranks[0]), 1);
	}
	mmc_memory_free(job.ranks[0].engine, memory);
	CHECK_EQ(count_regions(&job.ranks[0]), 0);
	munmap(other, 4 * NBYTES);
	end_job();
}

/* A loop of operations uses one bounce again and again. */
static void bounces_are_used_again(void)
{
	begin_job();
	for (uint8_t round = 1; round < 20; round++) {
		struct mmc_operation operation = gather(0, results[0], round);

		CHECK_EQ(begin(&job.ranks[0], &operation), MMC_EAGAIN);
		operation = gather(1, results[1], (uint8_t)(round + 9));
		CHECK_EQ(begin(&job.ranks[1], &operation), MMC_EAGAIN);
		CHECK_EQ(finish(&job.ranks[0]), 0);
		CHECK_EQ(finish(&job.ranks[1]), 0);
		CHECK_EQ(results[0][NBYTES], round + 9);
		CHECK_EQ(results[1][0], round);
		CHECK_EQ(count_regions(&job.ranks[0]), 1);
	}
	end_job();
}

CHECK_MAIN(CHECK_TEST(shared_results_arrive_in_place),
	   CHECK_TEST(bounces_are_used_again))
