/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One Allgather of two ranks whose operations a proxy carries out, for callgrind: only what
 * rank 0 itself spends is inside measured(). The argument is the number of chunks of a
 * block. Results lie in memory that the proxy shares, so nothing is copied for the user.
 */
#include <sys/mman.h>

#include "drivers/remote/endpoint.h"
#include "engine/state.h"
#include "offload/meeting.h"
#include "offload/ring.h"
#include "offloaded.h"

enum { CHUNK_BYTES = 1000, NWARM = 2 };

/* The two calls that measured() can make. */
enum act { BEGIN, END };

__attribute__((noinline, noclone)) static int
measured(struct rank *rank, enum act act, const struct mmc_operation *operation)
{
	if (act == BEGIN)
		return begin(rank, operation);
	return mmc_request_wait(rank->request, SLICE_NS);
}

/* Waits, without touching rank 0's engine, until its runner has told the end. */
static void await_completion(const struct rank *rank)
{
	const struct mmc_remote *remote = mmc_remote_of(rank->team->endpoint);

	while (mmc_ring_count(&remote->link.bridge->completions) == 0)
		usleep(1000);
}

static uint8_t *map_result(struct rank *rank, uint64_t nbytes)
{
	uint8_t *memory;
	void *other;
	int fd = mmc_meeting_create(nbytes, &other);

	CHECK(fd >= 0);
	CHECK_EQ(mmc_memory_map(rank->engine, fd, nbytes, (void **)&memory), 0);
	close(fd);
	munmap(other, nbytes);
	return memory;
}

int main(int argc, char **argv)
{
	uint64_t block_bytes = strtoull(argv[argc - 1], NULL, 10) * CHUNK_BYTES;
	static struct job job = {
		.nranks = 2,
		.proxied = 3,
		.chunk_bytes = CHUNK_BYTES,
		.timeout_ns = 1000 * MMC_S_NS,
	};
	uint8_t *results[2];

	begin_proxy();
	open_job(&job);
	for (uint32_t r = 0; r < 2; r++)
		results[r] = map_result(&job.ranks[r], 2 * block_bytes);
	for (uint32_t i = 0; i < NWARM; i++) {
		struct mmc_operation operation = {
			.kind = MMC_ALLGATHER,
			.block_bytes = block_bytes,
		};

		for (uint32_t r = 0; r < 2; r++)
			memset(results[r] + r * block_bytes, (int)(r + i),
			       block_bytes);
		operation.recv = results[0];
		CHECK_EQ(measured(&job.ranks[0], BEGIN, &operation),
			 MMC_EAGAIN);
		operation.recv = results[1];
		CHECK_EQ(begin(&job.ranks[1], &operation), MMC_EAGAIN);
		await_completion(&job.ranks[0]);
		CHECK_EQ(measured(&job.ranks[0], END, NULL), 0);
		CHECK_EQ(finish(&job.ranks[0]), 0);
		CHECK_EQ(finish(&job.ranks[1]), 0);
		CHECK_EQ(results[0][2 * block_bytes - 1], 1 + i);
		CHECK_EQ(results[1][0], i);
	}
	for (uint32_t r = 0; r < 2; r++)
		mmc_memory_free(job.ranks[r].engine, results[r]);
	close_job(&job);
	end_proxy();
	return check_failures > 0;
}
