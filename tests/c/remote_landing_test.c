/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks land one by one where a proxy carries out the operation. What the last rank sends
 * is lost, so whatever lands of an operation has landed before its end.
 */
#include "engine/remote/landing.h"

#include <sys/mman.h>

#include "drivers/remote/remote.h"
#include "engine/remote/requests.h"
#include "engine/threads/callers.h"
#include "offload/meeting.h"
#include "offloaded.h"
#include "present_bits.h"

enum { RANKS = 3, SILENT = 2, CHUNKS = 70, BLOCK_BYTES = CHUNKS * 1000 - 7 };

/* Where a rank's blocks begin, which are those of an Allgatherv in another order. */
static const uint64_t sizes[RANKS] = { BLOCK_BYTES, 5001, BLOCK_BYTES };
static const uint64_t scattered[RANKS] = { BLOCK_BYTES + 3, 2 * BLOCK_BYTES + 9,
					   0 };

static uint8_t own[RANKS * BLOCK_BYTES + 100];
static uint8_t others[RANKS][RANKS * BLOCK_BYTES + 100];
static struct job job;

static uint8_t byte_of(uint32_t rank, uint64_t at)
{
	return (uint8_t)(at * 7 + at / 251 + rank * 31);
}

/* Rank 0 has a proxy. The host beats so seldom that no test ends by that. */
static void begin_job(const char *fault)
{
	job = (struct job){
		.nranks = RANKS,
		.proxied = 1,
		.timeout_ns = 1000 * MMC_S_NS,
		.fault = fault,
	};
	begin_proxy();
	open_job(&job);
}

static void end_job(void)
{
	close_job(&job);
	end_proxy();
}

/* Returns an operation of rank `r` into `recv`, where this rank's block is in its place. */
static struct mmc_operation operation_of(enum mmc_kind kind, uint32_t r,
					 uint8_t *recv)
{
	bool uneven = kind == MMC_ALLGATHERV;
	struct mmc_operation operation = {
		.kind = kind,
		.block_bytes = BLOCK_BYTES,
		.blocks_bytes = sizes,
		.offsets_bytes = uneven ? scattered : NULL,
		.partial = 1,
		.notifies = r == 0,
		.recv = recv,
	};

	memset(recv, 0xee, sizeof(own));
	for (uint64_t i = 0; i < (uneven ? sizes[r] : BLOCK_BYTES); i++)
		recv[(uneven ? scattered[r] : r * BLOCK_BYTES) + i] =
			byte_of(r, i);
	return operation;
}

/* Starts an operation on all ranks, of which rank 0 receives at `recv`. */
static struct mmc_request *start(enum mmc_kind kind, uint8_t *recv)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		const struct mmc_operation operation =
			operation_of(kind, r, r == 0 ? recv : others[r]);

		CHECK_EQ(begin(&job.ranks[r], &operation), MMC_EAGAIN);
	}
	return job.ranks[0].request;
}

/* Cancels what rank 0 has started. The silent rank may lack nothing, and have it all. */
static void cancel(void)
{
	int rv;

	mmc_request_cancel(job.ranks[0].request);
	CHECK_EQ(finish(&job.ranks[0]), -MMC_ECANCELED);
	CHECK_EQ(finish(&job.ranks[1]), -MMC_ECANCELED);
	rv = finish(&job.ranks[SILENT]);
	CHECK(rv == 0 || rv == -MMC_ECANCELED);
}

static void check_block(const uint8_t *block, uint32_t rank, uint64_t nbytes)
{
	for (uint64_t i = 0; i < nbytes; i++)
		if (!CHECK_EQ(block[i], byte_of(rank, i)))
			return;
}

static int look_range(struct mmc_request *request, uint32_t rank,
		      uint64_t first, uint64_t nbytes, uint64_t slice_ns)
{
	const struct mmc_range range = {
		.rank = rank,
		.first_bytes = first,
		.nbytes = nbytes,
	};

	return mmc_request_wait_range(request, &range, slice_ns);
}

/* Waits until block number `index` has landed. Returns whose it is. */
static uint32_t await_block(struct mmc_request *request, uint32_t index)
{
	uint32_t rank = UINT32_MAX;

	while (mmc_request_wait_block(request, index, SLICE_NS, &rank) ==
	       MMC_EAGAIN)
		;
	return rank;
}

#define SILENCE "loss=1,rank=2,dir=tx"

/* Checks that all blocks land but that of the silent rank, and all of what is said. */
static void check_landing(enum mmc_kind kind, uint8_t *recv)
{
	struct mmc_request *request = start(kind, recv);
	const uint8_t *block = recv + BLOCK_BYTES;
	uint64_t nbytes = BLOCK_BYTES;
	uint32_t rank;

	if (kind == MMC_ALLGATHERV) {
		block = recv + scattered[1];
		nbytes = sizes[1];
	}
	CHECK_EQ(await_block(request, 0), 0);
	CHECK_EQ(await_block(request, 1), 1);
	check_block(block, 1, nbytes);
	CHECK_EQ(look_range(request, 1, 0, nbytes, 0), 0);
	CHECK_EQ(look_range(request, SILENT, 0, 1, 0), MMC_EAGAIN);
	CHECK_EQ(mmc_request_wait_block(request, 2, 0, &rank), MMC_EAGAIN);
	CHECK_EQ(mmc_request_wait(request, 0), MMC_EAGAIN);
	cancel();
	check_block(block, 1, nbytes);
}

static void blocks_land_before_the_end(void)
{
	static const enum mmc_kind kinds[] = { MMC_ALLGATHER, MMC_ALLGATHERV };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		begin_job(SILENCE);
		check_landing(kinds[i], own);
		end_job();
	}
}

/* The same in memory that the proxy maps, to which it writes itself. */
static void shared_results_land_in_place(void)
{
	uint8_t *memory;
	void *other;
	int fd;

	begin_job(SILENCE);
	fd = mmc_meeting_create(sizeof(own), &other);
	CHECK_EQ(mmc_memory_map(job.ranks[0].engine, fd, sizeof(own),
				(void **)&memory),
		 0);
	close(fd);
	check_landing(MMC_ALLGATHERV, memory);
	mmc_memory_free(job.ranks[0].engine, memory);
	munmap(other, sizeof(own));
	end_job();
}

/* Whoever waits for the engine's news hears of a block though nobody waits for it. */
static void blocks_are_told_of(void)
{
	struct mmc_request *request;
	uint64_t nended = 0;
	uint32_t rank;

	begin_job(SILENCE);
	request = start(MMC_ALLGATHER, own);
	mmc_request_tell_blocks(request);
	while (mmc_request_wait_block(request, 1, 0, &rank) == MMC_EAGAIN)
		CHECK_EQ(mmc_engine_await(job.ranks[0].engine, &nended), 0);
	check_block(own + BLOCK_BYTES, 1, BLOCK_BYTES);
	cancel();
	CHECK_EQ(job.ranks[0].engine->ntelling, 0);
	end_job();
}

/* What is asked of an operation in the queue counts once it is posted. */
static void queued_requests_land(void)
{
	struct mmc_operation operation;
	uint32_t rank;

	begin_job(SILENCE);
	operation = operation_of(MMC_ALLGATHER, 0, own);
	operation.unready = 1;
	CHECK_EQ(begin(&job.ranks[0], &operation), MMC_EAGAIN);
	CHECK_EQ(mmc_request_wait_block(job.ranks[0].request, 0, 0, &rank),
		 MMC_EAGAIN);
	CHECK(mmc_remote_is_shown(job.ranks[0].request));
	for (uint32_t r = 1; r < RANKS; r++) {
		operation = operation_of(MMC_ALLGATHER, r, others[r]);
		CHECK_EQ(begin(&job.ranks[r], &operation), MMC_EAGAIN);
	}
	mmc_request_ready(job.ranks[0].request);
	CHECK_EQ(await_block(job.ranks[0].request, 1), 1);
	check_block(own + BLOCK_BYTES, 1, BLOCK_BYTES);
	cancel();
	end_job();
}

/* Who only waits makes the proxy show nothing; the order is known all the same. */
static void nobody_asks_for_parts(void)
{
	struct mmc_request *request;
	uint32_t rank = 9;

	begin_job("");
	request = start(MMC_ALLGATHER, own);
	while (mmc_request_wait(request, SLICE_NS) == MMC_EAGAIN)
		;
	CHECK_EQ(mmc_remote_link(job.ranks[0].team->endpoint)->bridge->nshown,
		 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		CHECK_EQ(mmc_request_wait_block(request, i, 0, &rank), 0);
		CHECK_EQ(rank, i);
		check_block(own + i * BLOCK_BYTES, i, BLOCK_BYTES);
	}
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_EQ(finish(&job.ranks[r]), 0);
	end_job();
}

/* The bits that a program may look at are those of what has landed. */
static void bits_of_chunks(void)
{
	struct mmc_present *present;
	struct mmc_request *request;
	uint32_t nbits;

	begin_job(SILENCE);
	request = start(MMC_ALLGATHER, own);
	CHECK_EQ(mmc_request_present(request, &present), 0);
	CHECK_EQ(await_block(request, 1), 1);
	CHECK_EQ(nset(present, &nbits), 2 * CHUNKS);
	CHECK_EQ(nbits, RANKS * CHUNKS);
	cancel();
	end_job();
	CHECK_EQ(nset(present, &nbits), 2 * CHUNKS);
	mmc_present_free(present);
}

/*
 * Bits that stand for no chunk change nothing, and no bit is taken twice: what the runner
 * writes over a chunk that has landed does not reach the user.
 */
static void a_runner_that_lies(void)
{
	struct mmc_request *request;
	uint64_t *bits;

	begin_job(SILENCE);
	request = start(MMC_ALLGATHER, own);
	CHECK_EQ(await_block(request, 1), 1);
	CHECK_EQ(mmc_engine_enter(job.ranks[0].engine), 0);
	bits = (uint64_t *)(void *)(request->bounce->bytes +
				    (RANKS * BLOCK_BYTES + 7) / 8 * 8);
	CHECK_EQ(bits[0], UINT64_MAX);
	request->bounce->bytes[BLOCK_BYTES] ^= 1;
	bits[0] = 0;
	bits[(RANKS * CHUNKS) / 64] = UINT64_MAX << (RANKS * CHUNKS) % 64;
	mmc_remote_land_shown(request);
	bits[0] = UINT64_MAX;
	mmc_remote_land_shown(request);
	CHECK_EQ(mmc_landing_count(request->landing), 2);
	mmc_engine_leave(job.ranks[0].engine);
	check_block(own + BLOCK_BYTES, 1, BLOCK_BYTES);
	CHECK_EQ(look_range(request, SILENT, 0, 1, SLICE_NS), MMC_EAGAIN);
	cancel();
	end_job();
}

/* Who is about to sleep looks once more for news, and looks at it once. */
static void news_that_come_before_a_sleep(void)
{
	struct mmc_request *request;
	struct mmc_link *link;

	begin_job(SILENCE);
	request = start(MMC_ALLGATHER, own);
	link = mmc_remote_link(job.ranks[0].team->endpoint);
	CHECK_EQ(await_block(request, 1), 1);
	CHECK_EQ(mmc_engine_enter(job.ranks[0].engine), 0);
	while (mmc_link_has_shown(link))
		;
	CHECK(!mmc_link_arm(link));
	link->bridge->nshown++;
	CHECK(mmc_link_arm(link));
	CHECK(mmc_link_has_shown(link));
	CHECK(!mmc_link_arm(link));
	mmc_engine_leave(job.ranks[0].engine);
	/* They were in vain. */
	CHECK_EQ(look_range(request, SILENT, 0, 1, SLICE_NS), MMC_EAGAIN);
	cancel();
	end_job();
}

CHECK_MAIN(CHECK_TEST(blocks_land_before_the_end),
	   CHECK_TEST(shared_results_land_in_place),
	   CHECK_TEST(blocks_are_told_of), CHECK_TEST(queued_requests_land),
	   CHECK_TEST(nobody_asks_for_parts), CHECK_TEST(bits_of_chunks),
	   CHECK_TEST(a_runner_that_lies),
	   CHECK_TEST(news_that_come_before_a_sleep))
