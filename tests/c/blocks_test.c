/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines exchange blocks that the entry barrier's messages carry; see loopback.h. */
#include "loopback.h"

#define NOPS 40
#define BLOCK_BYTES_MAX 20000

/* Runs one operation; a Bcast's root is rank 1. */
static void run_one(struct rank *rank, uint32_t kind, uint64_t nbytes,
		    uint32_t salt)
{
	static _Thread_local uint8_t send[BLOCK_BYTES_MAX];
	static _Thread_local uint8_t recv[NRANKS * BLOCK_BYTES_MAX];
	uint32_t nblocks = kind == MMC_BCAST ? 1 : NRANKS;
	struct mmc_operation operation = {
		.kind = kind,
		.root = kind == MMC_BCAST ? 1 : 0,
		.block_bytes = nbytes,
		.send = send,
		.recv = recv,
	};
	struct mmc_request *request = NULL;
	int rv;

	for (uint64_t i = 0; i < nbytes; i++)
		send[i] = byte_of(rank->number, i, salt);
	memset(recv, 0xee, NRANKS * nbytes);
	if (kind == MMC_BCAST && rank->number == 1)
		memcpy(recv, send, nbytes);
	if (kind == MMC_BCAST)
		operation.send = NULL;
	rv = mmc_start(rank->streams[0], &operation, SLICE_NS, &request);
	if (rv == MMC_EAGAIN)
		rv = wait_for(request);
	mmc_request_free(request);
	rank->nwrong += rv != 0;
	for (uint64_t i = 0; i < nblocks * nbytes; i++) {
		uint32_t owner = kind == MMC_BCAST ? 1 : (uint32_t)(i / nbytes);

		rank->nwrong += recv[i] != byte_of(owner, i % nbytes, salt);
	}
	rank->nwrong += nblocks < NRANKS && recv[nbytes] != 0xee;
}

/*
 * Runs operations of many sizes, on both sides of what is carried. A barrier ends them,
 * since a rank that has all its data need not wait for others.
 */
static void *run_all(void *argument)
{
	static const uint64_t sizes[] = {
		1, 8, 63, 480, 481, 960, 961, 1500, 7000, 15360, 16384, 16385
	};
	struct rank *rank = argument;

	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
		for (uint32_t i = 0; i < NOPS; i++)
			run_one(rank, i / 10 % 2 ? MMC_BCAST : MMC_ALLGATHER,
				sizes[s], i);
	run_one(rank, MMC_ALLGATHER, 8, 0);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void right_bytes(void)
{
	open_all("");
	on_all(run_all);
	close_all();
}

static void right_bytes_under_loss(void)
{
	for (repair = 0; repair < 3; repair++) {
		open_all("loss=0.1,dup=0.05,reorder=0.05,seed=7,kind=all");
		on_all(run_all);
		close_all();
	}
	repair = 0;
}

CHECK_MAIN(CHECK_TEST(right_bytes), CHECK_TEST(right_bytes_under_loss))
