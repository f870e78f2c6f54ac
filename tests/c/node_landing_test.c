/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of node streams are read as they land: copied out of slots, in memory that the
 * members share, on one node and on several, by several rails, and read from the sender.
 */
#include "node/landing.h"

#include "node_jobs.h"
#include "node_program.h"
#include "support/bits.h"

enum { NROUNDS = 8, KEY = 5 };

static struct leaders leaders;
static struct job job;
static struct program program;
static bool is_shared;

/* Each node's shared memory, which holds one result. */
static uint8_t results[NODES_MAX][RESULT_BYTES_MAX];

static uint32_t root_of(uint32_t i)
{
	return program.operations[i].root;
}

static bool is_bcast(uint32_t i)
{
	return program.operations[i].kind == MMC_BCAST;
}

/* Returns where the block of `rank` lies in the result. */
static uint64_t offset_of(uint32_t i, uint32_t rank)
{
	return is_bcast(i) ? 0 : program.operations[i].offsets[rank];
}

/* Describes operation `i`, with this rank's block ready. */
static struct mmc_operation prepare(uint32_t i, uint32_t rank, uint8_t *send,
				    uint8_t *recv)
{
	struct mmc_operation operation = {
		.kind = program.operations[i].kind,
		.root = root_of(i),
		.block_bytes = program.operations[i].sizes[0],
		.recv = recv,
		.shared = is_shared ? KEY : 0,
		.partial = 1,
	};
	uint8_t *own = recv + offset_of(i, rank);

	if (operation.kind == MMC_ALLGATHERV) {
		operation.blocks_bytes = program.operations[i].sizes;
		operation.offsets_bytes = program.operations[i].offsets;
	}
	if (!is_bcast(i) && !program.operations[i].in_place)
		operation.send = own = send;
	if (!is_bcast(i) || root_of(i) == rank)
		fill_block(own, program.operations[i].sizes[rank], i, rank);
	return operation;
}

/* Returns whether the first `nbytes` of a block stand in the result. */
static bool begins(uint32_t i, uint32_t rank, uint64_t nbytes,
		   const uint8_t *recv)
{
	static _Thread_local uint8_t block[RESULT_BYTES_MAX];

	fill_block(block, nbytes, i, rank);
	return memcmp(block, recv + offset_of(i, rank), nbytes) == 0;
}

/* Returns whether all that is said to be present of each block is there. */
static bool has_what_it_says(uint32_t i, struct mmc_node_request *request,
			     const uint8_t *recv, struct mmc_prng *prng)
{
	for (uint32_t r = 0; r < program.nranks; r++) {
		uint64_t size = program.operations[i].sizes[r];
		const struct mmc_range range = {
			.rank = r,
			.nbytes = mmc_prng_below(prng, size + 1),
		};

		if (is_bcast(i) && r != root_of(i))
			continue;
		if (mmc_node_request_wait_range(request, &range, 0) == 0 &&
		    !begins(i, r, range.nbytes, recv))
			return false;
	}
	return true;
}

/* Returns how many of the bits are set. */
static uint32_t nset(const struct mmc_present *present, uint32_t *nbits)
{
	const uint64_t *words = mmc_present_words(present, nbits);
	uint32_t n = 0;

	for (uint32_t w = 0; w < (*nbits + 63) / 64; w++)
		n += mmc_set_bits(__atomic_load_n(&words[w], __ATOMIC_RELAXED));
	return n;
}

/* Reads the blocks as they land; returns how much was wrong. */
static uint32_t take_blocks(uint32_t i, struct mmc_node_request *request,
			    const uint8_t *recv, struct mmc_prng *prng)
{
	uint32_t nblocks = is_bcast(i) ? 1 : program.nranks;
	uint32_t seen = 0, nwrong = 0, rank = 0;

	for (uint32_t k = 0; k < nblocks; k++) {
		int rv;

		do {
			nwrong += !has_what_it_says(i, request, recv, prng);
			rv = mmc_node_request_wait_block(request, k, MMC_MS_NS,
							 &rank);
		} while (rv == MMC_EAGAIN);
		if (rv != 0 || rank >= program.nranks || (seen >> rank & 1))
			return nwrong + 1;
		seen |= UINT32_C(1) << rank;
		nwrong += !begins(i, rank, program.operations[i].sizes[rank],
				  recv);
	}
	nwrong += mmc_node_request_wait_block(request, nblocks, 0, &rank) !=
		  -MMC_EINVAL;
	return nwrong;
}

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

/* Runs one operation, and reads its blocks before its end and after it. */
static uint32_t run_one(struct runner *runner, uint32_t i, uint8_t *send,
			uint8_t *recv, struct mmc_prng *prng)
{
	struct mmc_operation operation = prepare(i, runner->rank, send, recv);
	struct mmc_present *present = NULL;
	struct mmc_node_request *request;
	uint32_t nwrong = 0, nbits = 0;
	int rv = mmc_node_start(runner->stream, &operation, 0, &request);

	if (request == NULL)
		return rv != 0;
	nwrong += mmc_node_request_present(request, &present) != 0;
	nwrong += take_blocks(i, request, recv, prng);
	while ((rv = mmc_node_request_wait(request, MMC_MS_NS)) == MMC_EAGAIN)
		;
	nwrong += take_blocks(i, request, recv, prng);
	mmc_node_request_free(request);
	nwrong += nset(present, &nbits) != nbits;
	mmc_present_free(present);
	return nwrong + (rv != 0);
}

/* Runs the program. In shared memory, a rank waits until all have looked at the last. */
static void *run_rank_partially(void *argument)
{
	const struct mmc_operation barrier = { .kind = MMC_NODE_BARRIER };
	struct runner *runner = argument;
	struct mmc_prng prng = { .state = runner->seed + runner->rank };
	uint8_t *memory = malloc(2 * RESULT_BYTES_MAX);

	for (uint32_t i = 0; i < NOPERATIONS && runner->nwrong == 0; i++) {
		uint8_t *recv = is_shared ? results[job.nodes[runner->rank]]
					  : memory + RESULT_BYTES_MAX;

		if (is_shared)
			runner->nwrong += finish(runner->stream, &barrier) != 0;
		runner->nwrong += run_one(runner, i, memory, recv, &prng);
		if (runner->nwrong > 0)
			printf("rank %" PRIu32 ", operation %" PRIu32 "\n",
			       runner->rank, i);
	}
	free(memory);
	return NULL;
}

static void run_all(struct mmc_node_stream *const *streams)
{
	struct runner runners[MEMBERS_MAX];
	pthread_t threads[MEMBERS_MAX];

	for (uint32_t r = 0; r < program.nranks; r++) {
		runners[r] = (struct runner){
			.stream = streams[r],
			.rank = r,
			.seed = check_seed(),
		};
		pthread_create(&threads[r], NULL, run_rank_partially,
			       &runners[r]);
	}
	for (uint32_t r = 0; r < program.nranks; r++) {
		pthread_join(threads[r], NULL);
		CHECK_EQ(runners[r].nwrong, 0);
	}
}

static void on_one_node(void)
{
	struct mmc_prng prng = { .state = check_seed() };

	for (uint32_t round = 0; round < 2 * NROUNDS; round++) {
		struct mmc_node_stream_options options;
		struct members members;

		is_shared = round % 2;
		program.nranks = 1 + (uint32_t)mmc_prng_below(&prng, 6);
		draw(&program, &prng);
		options = members_options(program.nranks);
		options.nslots = 1U << mmc_prng_below(&prng, 3);
		options.slot_bytes = 512 * (1 + mmc_prng_below(&prng, 40));
		job = (struct job){ .nnodes = 1 };
		members_open(&members, program.nranks, options);
		run_all(members.streams);
		members_close(&members);
	}
}

/* Two members read large blocks from each other, and all land at the end. */
static void read_from_the_sender(void)
{
	struct mmc_prng prng = { .state = check_seed() };
	struct members members;

	is_shared = false;
	program.nranks = 2;
	draw(&program, &prng);
	members_open(&members, 2, members_options(2));
	for (uint32_t r = 0; r < 2; r++)
		mmc_node_stream_set_cross(members.streams[r], 3000);
	run_all(members.streams);
	members_close(&members);
}

/* Spreads ranks over two nodes, in blocks or by turns; the last ones lead. */
static void spread(bool cyclic)
{
	uint32_t nranks = program.nranks;

	job.nranks = nranks;
	job.nnodes = leaders.nnodes;
	for (uint32_t r = 0; r < nranks; r++)
		job.nodes[r] = cyclic ? r % 2 : r >= (nranks + 1) / 2;
	for (uint32_t node = 0; node < 2; node++) {
		uint32_t rail = 0;

		for (uint32_t r = nranks; r-- > 0 && rail < leaders.nrails;)
			if (job.nodes[r] == node)
				job.leaders[rail++ * 2 + node] = r;
	}
}

static void on_two_nodes(bool shared, uint32_t nrails)
{
	struct mmc_prng prng = { .state = check_seed() + nrails };

	is_shared = shared;
	leaders_open(&leaders, 2, nrails);
	for (uint32_t round = 0; round < NROUNDS; round++) {
		struct mmc_node_stream_options options = members_options(1);

		program.nranks =
			2 * nrails + (uint32_t)mmc_prng_below(&prng, 3);
		draw(&program, &prng);
		spread(round % 2);
		options.nslots = 1U << mmc_prng_below(&prng, 4);
		options.slot_bytes = 512 * (1 + mmc_prng_below(&prng, 40));
		job_open(&job, &leaders, options);
		run_all(job.streams);
		job_close(&job);
	}
	leaders_close(&leaders);
}

static void copied_by_each(void)
{
	for (uint32_t nrails = 1; nrails <= 2; nrails++)
		on_two_nodes(false, nrails);
}

static void in_shared_memory(void)
{
	for (uint32_t nrails = 1; nrails <= 2; nrails++)
		on_two_nodes(true, nrails);
}

CHECK_MAIN(CHECK_TEST(on_one_node), CHECK_TEST(read_from_the_sender),
	   CHECK_TEST(copied_by_each), CHECK_TEST(in_shared_memory))
