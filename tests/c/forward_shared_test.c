/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of several nodes in memory that the members of each node share. */
#include "node/forward.h"

#include "node/read.h"
#include "node_jobs.h"
#include "node_program.h"

enum { NROUNDS = 12, KEY = 5 };

static struct leaders leaders;
static struct job job;
static struct program program;

/* Each node's shared memory, which holds one result. */
static uint8_t results[NODES_MAX][RESULT_BYTES_MAX];

/* Spreads ranks over two nodes, in blocks or by turns; the last ones lead. */
static void spread(bool cyclic, uint32_t nranks)
{
	job.nranks = nranks;
	job.nnodes = leaders.nnodes;
	for (uint32_t r = 0; r < nranks; r++)
		job.nodes[r] = cyclic ? r % 2 : r >= (nranks + 1) / 2;
	for (uint32_t rail = 0, r = nranks; rail < leaders.nrails; rail++)
		for (uint32_t node = 0; node < 2; node++) {
			for (r = nranks - 1;
			     job.nodes[r] != node ||
			     (rail > 0 &&
			      r >= job.leaders[(rail - 1) * 2 + node]);
			     r--)
				;
			job.leaders[rail * 2 + node] = r;
		}
}

/* Carries out an operation, and returns its outcome. */
static int finish(struct mmc_node_stream *stream,
		  const struct mmc_operation *operation)
{
	struct mmc_node_request *request;
	int rv = mmc_node_start(stream, operation, MMC_S_NS, &request);

	while (rv == MMC_EAGAIN)
		rv = mmc_node_request_wait(request, MMC_S_NS);
	mmc_node_request_free(request);
	return rv;
}

/* Describes operation `i`; this rank's block is in `send` where it is not in place. */
static struct mmc_operation describe(uint32_t i, uint32_t rank, uint8_t *send)
{
	struct mmc_operation operation = {
		.kind = program.operations[i].kind,
		.root = program.operations[i].root,
		.block_bytes = program.operations[i].sizes[0],
		.recv = results[job.nodes[rank]],
		.shared = KEY,
	};

	if (operation.kind == MMC_ALLGATHERV) {
		operation.blocks_bytes = program.operations[i].sizes;
		operation.offsets_bytes = program.operations[i].offsets;
	}
	if (operation.kind != MMC_BCAST && !program.operations[i].in_place)
		operation.send = send;
	return operation;
}

/* Puts the rank's block where operation `i` takes it from. */
static void put_block(uint32_t i, uint32_t rank,
		      const struct mmc_operation *operation, uint8_t *send)
{
	uint8_t *own = operation->recv;

	if (operation->kind == MMC_BCAST && operation->root != rank)
		return;
	if (operation->send != NULL)
		own = send;
	else if (operation->kind != MMC_BCAST)
		own += program.operations[i].offsets[rank];
	fill_block(own, program.operations[i].sizes[rank], i, rank);
}

/* Returns whether all blocks of operation `i` stand in a result; gaps do not matter. */
static bool has_blocks(uint32_t i, const uint8_t *result)
{
	static _Thread_local uint8_t block[RESULT_BYTES_MAX];

	for (uint32_t r = 0; r < program.nranks; r++) {
		uint64_t nbytes = program.operations[i].sizes[r];
		bool bcast = program.operations[i].kind == MMC_BCAST;
		uint64_t offset = bcast ? 0 : program.operations[i].offsets[r];

		if (bcast && r != program.operations[i].root)
			continue;
		fill_block(block, nbytes, i, r);
		if (memcmp(block, result + offset, nbytes) != 0)
			return false;
	}
	return true;
}

/*
 * Runs the program. Before a rank writes to the shared memory itself, all must have
 * looked at the result before; otherwise the operation sees to that.
 */
static void *run_shared(void *argument)
{
	const struct mmc_operation barrier = { .kind = MMC_NODE_BARRIER };
	struct runner *runner = argument;
	uint32_t rank = runner->rank;
	uint8_t *send = malloc(RESULT_BYTES_MAX);

	for (uint32_t i = 0; i < NOPERATIONS && runner->nwrong == 0; i++) {
		struct mmc_operation operation = describe(i, rank, send);

		if (operation.send == NULL)
			runner->nwrong += finish(runner->stream, &barrier) != 0;
		put_block(i, rank, &operation, send);
		runner->nwrong += finish(runner->stream, &operation) != 0;
		runner->nwrong += !has_blocks(i, operation.recv);
		if (runner->nwrong > 0)
			printf("rank %" PRIu32 ", operation %" PRIu32 "\n",
			       rank, i);
	}
	free(send);
	return NULL;
}

/* Runs a random program, with ranks in blocks or by turns. */
static void run_round(struct mmc_prng *prng, bool cyclic)
{
	struct mmc_node_stream_options options = members_options(1);
	struct runner runners[MEMBERS_MAX];
	pthread_t threads[MEMBERS_MAX];

	program.nranks = 2 * leaders.nrails + (uint32_t)mmc_prng_below(prng, 3);
	draw(&program, prng);
	spread(cyclic, program.nranks);
	options.nslots = 1U << mmc_prng_below(prng, 4);
	options.slot_bytes = 512 * (1 + mmc_prng_below(prng, 40));
	job_open(&job, &leaders, options);
	for (uint32_t r = 0; r < job.nranks; r++) {
		runners[r] = (struct runner){
			.stream = job.streams[r],
			.rank = r,
		};
		pthread_create(&threads[r], NULL, run_shared, &runners[r]);
	}
	for (uint32_t r = 0; r < job.nranks; r++) {
		pthread_join(threads[r], NULL);
		CHECK_EQ(runners[r].nwrong, 0);
	}
	job_close(&job);
}

static void run_rounds(bool cyclic, uint32_t nrails)
{
	struct mmc_prng prng = { check_seed() + cyclic };

	leaders_open(&leaders, 2, nrails);
	for (uint32_t round = 0; round < NROUNDS; round++)
		run_round(&prng, cyclic);
	leaders_close(&leaders);
}

static void results_of_ranks_in_blocks(void)
{
	for (uint32_t nrails = 1; nrails <= 3; nrails++)
		run_rounds(false, nrails);
}

static void results_of_ranks_by_turns(void)
{
	for (uint32_t nrails = 1; nrails <= 3; nrails++)
		run_rounds(true, nrails);
}

/*
 * A node leader passes over an entry before it reads it, even if the last member fills it
 * in between: once the operation is over, nobody would do so any more.
 */
static void an_entry_is_passed_before_it_is_read(void)
{
	const struct mmc_operation barrier = { .kind = MMC_NODE_BARRIER };
	struct mmc_node_request *request;
	struct mmc_node_request *none;

	leaders_open(&leaders, 2, 1);
	spread(false, 4);
	job_open(&job, &leaders, members_options(1));
	CHECK_EQ(job.leaders[0], 1);
	CHECK_EQ(mmc_node_start(job.streams[1], &barrier, 0, &request),
		 MMC_EAGAIN);
	CHECK_EQ(mmc_node_start(job.streams[0], &barrier, 0, &none), 0);
	CHECK(!mmc_node_read(request));
	CHECK_EQ(mmc_node_request_wait(request, 0), 0);
	CHECK_EQ(job.streams[1]->nforwarded, 1);
	mmc_node_request_free(request);
	job_close(&job);
	leaders_close(&leaders);
}

/*
 * Where a member has a piece of data, its leader may have an entry, or a piece of another
 * rail. It does not pass over that, lest the member takes its own piece for whole.
 */
static void members_that_disagree_are_told(void)
{
	static uint8_t send[2][8];
	const struct mmc_operation private = {
		.kind = MMC_ALLGATHER,
		.block_bytes = 8,
		.send = send[0],
		.recv = results[1],
	};
	struct mmc_operation shared = private;
	struct mmc_node_request *requests[2];

	for (uint32_t nrails = 1; nrails <= 2; nrails++) {
		leaders_open(&leaders, 2, nrails);
		spread(false, 4);
		job_open(&job, &leaders, members_options(1));
		shared.send = send[1];
		shared.recv = results[0];
		shared.shared = KEY;
		/* Rank 1 leads its node, on the first rail. */
		CHECK_EQ(mmc_node_start(job.streams[1], &shared, 0,
					&requests[1]),
			 MMC_EAGAIN);
		CHECK(mmc_node_start(job.streams[0], &private, 0,
				     &requests[0]) != 0);
		for (uint32_t r = 0; r < 2; r++)
			while (mmc_node_request_wait(requests[r], MMC_MS_NS) ==
			       MMC_EAGAIN)
				mmc_node_request_wait(requests[1 - r], 0);
		for (uint32_t r = 0; r < 2; r++) {
			CHECK_EQ(mmc_node_request_wait(requests[r], 0),
				 -MMC_EMISMATCH);
			mmc_node_request_free(requests[r]);
		}
		job_close(&job);
		leaders_close(&leaders);
	}
}

CHECK_MAIN(CHECK_TEST(results_of_ranks_in_blocks),
	   CHECK_TEST(results_of_ranks_by_turns),
	   CHECK_TEST(an_entry_is_passed_before_it_is_read),
	   CHECK_TEST(members_that_disagree_are_told))
