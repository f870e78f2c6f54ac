/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of random operations, which each rank runs in a thread of its own, and whose
 * results are compared with what MPI's rules say.
 */
#ifndef MMC_TESTS_NODE_PROGRAM_H
#define MMC_TESTS_NODE_PROGRAM_H

#include <pthread.h>

#include "node_members.h"
#include "support/prng.h"

enum { NOPERATIONS = 60, IN_FLIGHT_MAX = 5, RESULT_BYTES_MAX = 100 << 10 };

/* The operations that all members run, drawn from the seed alone. */
struct program {
	uint32_t nranks;
	struct {
		uint32_t kind;
		uint32_t root;
		bool in_place;
		uint64_t sizes[MEMBERS_MAX];
		uint64_t offsets[MEMBERS_MAX];
		uint64_t result_bytes;
	} operations[NOPERATIONS];
};

/* One member's run of the program. */
struct runner {
	const struct program *program;
	struct mmc_node_stream *stream;
	uint32_t rank;
	uint64_t seed;
	uint32_t nwrong;
};

static inline uint64_t draw_bytes(struct mmc_prng *prng)
{
	static const uint64_t bounds[] = { 0, 1, 64, 1000, 4096, 10000 };
	uint64_t bound = bounds[mmc_prng_below(prng, 6)];
	uint64_t around = mmc_prng_below(prng, 3);

	return bound + around > 1 ? bound + around - 1 : around;
}

static inline void draw(struct program *program, struct mmc_prng *prng)
{
	for (uint32_t i = 0; i < NOPERATIONS; i++) {
		uint64_t end_bytes = 0;
		uint64_t same = draw_bytes(prng);

		program->operations[i].kind =
			MMC_ALLGATHER + (uint32_t)mmc_prng_below(prng, 3);
		program->operations[i].root =
			(uint32_t)mmc_prng_below(prng, program->nranks);
		program->operations[i].in_place = mmc_prng_below(prng, 2);
		for (uint32_t r = 0; r < program->nranks; r++) {
			bool varies = program->operations[i].kind ==
				      MMC_ALLGATHERV;

			program->operations[i].sizes[r] =
				varies ? draw_bytes(prng) : same;
			if (varies)
				end_bytes += mmc_prng_below(prng, 2) * 7;
			program->operations[i].offsets[r] = end_bytes;
			end_bytes += program->operations[i].sizes[r];
		}
		if (program->operations[i].kind == MMC_BCAST)
			end_bytes = same;
		program->operations[i].result_bytes = end_bytes;
	}
}

/* Returns whether a result is what MPI's rules say. */
static inline bool is_right(const struct program *program, uint32_t i,
			    const uint8_t *result)
{
	static _Thread_local uint8_t expected[RESULT_BYTES_MAX];

	memset(expected, 0xee, program->operations[i].result_bytes);
	for (uint32_t r = 0; r < program->nranks; r++) {
		if (program->operations[i].kind == MMC_BCAST &&
		    r != program->operations[i].root)
			continue;
		fill_block(program->operations[i].kind == MMC_BCAST
				   ? expected
				   : expected +
					     program->operations[i].offsets[r],
			   program->operations[i].sizes[r], i, r);
	}
	return memcmp(expected, result, program->operations[i].result_bytes) ==
	       0;
}

/* Starts operation `i`, with memory in `buffers`, and returns its request, or NULL. */
static inline struct mmc_node_request *
start_one(struct runner *runner, uint32_t i, uint8_t *send, uint8_t *recv)
{
	const struct program *program = runner->program;
	uint32_t kind = program->operations[i].kind;
	uint32_t root = program->operations[i].root;
	bool bcast = kind == MMC_BCAST;
	struct mmc_node_request *request;
	struct mmc_operation operation = {
		.kind = kind,
		.root = root,
		.block_bytes = program->operations[i].sizes[0],
		.recv = recv,
	};
	uint8_t *own = recv;
	int rv;

	if (kind == MMC_ALLGATHERV) {
		operation.blocks_bytes = program->operations[i].sizes;
		operation.offsets_bytes = program->operations[i].offsets;
	}
	memset(recv, 0xee, program->operations[i].result_bytes);
	if (!bcast)
		own += program->operations[i].offsets[runner->rank];
	if (!bcast && !program->operations[i].in_place)
		operation.send = own = send;
	if (!bcast || root == runner->rank)
		fill_block(own, program->operations[i].sizes[runner->rank], i,
			   runner->rank);
	rv = mmc_node_start(runner->stream, &operation, 0, &request);
	runner->nwrong += rv < 0;
	return request;
}

static inline void finish_one(struct runner *runner, uint32_t i,
			      struct mmc_node_request *request,
			      const uint8_t *result)
{
	int rv = 0;

	if (request != NULL) {
		do
			rv = mmc_node_request_wait(request, MMC_MS_NS);
		while (rv == MMC_EAGAIN);
		mmc_node_request_free(request);
	}
	if (rv != 0 || !is_right(runner->program, i, result)) {
		printf("rank %" PRIu32 ", operation %" PRIu32 ": %d\n",
		       runner->rank, i, rv);
		runner->nwrong++;
	}
}

/* Runs the program, with up to IN_FLIGHT_MAX operations under way. */
static inline void *run_rank(void *argument)
{
	struct runner *runner = argument;
	struct mmc_node_request *requests[IN_FLIGHT_MAX];
	uint8_t *memory = malloc(IN_FLIGHT_MAX * 2 * RESULT_BYTES_MAX);
	struct mmc_prng prng;
	uint32_t nstarted = 0;
	uint32_t nfinished = 0;

	prng.state = runner->seed + runner->rank;
	while (nfinished < NOPERATIONS) {
		bool can_start = nstarted < NOPERATIONS &&
				 nstarted - nfinished < IN_FLIGHT_MAX;
		bool starts = can_start && (nstarted == nfinished ||
					    mmc_prng_below(&prng, 2));
		uint32_t i = starts ? nstarted : nfinished;
		uint8_t *send =
			memory + i % IN_FLIGHT_MAX * 2 * RESULT_BYTES_MAX;

		if (starts) {
			requests[i % IN_FLIGHT_MAX] = start_one(
				runner, i, send, send + RESULT_BYTES_MAX);
			nstarted++;
		} else {
			finish_one(runner, i, requests[i % IN_FLIGHT_MAX],
				   send + RESULT_BYTES_MAX);
			nfinished++;
		}
	}
	free(memory);
	return NULL;
}

/* Runs the program, and checks what every rank has got. */
static inline void run_program(const struct program *program,
			       struct mmc_node_stream *const *streams,
			       uint64_t seed)
{
	struct runner runners[MEMBERS_MAX];
	pthread_t threads[MEMBERS_MAX];

	for (uint32_t i = 0; i < program->nranks; i++) {
		runners[i] = (struct runner){
			.program = program,
			.stream = streams[i],
			.rank = i,
			.seed = seed,
		};
		pthread_create(&threads[i], NULL, run_rank, &runners[i]);
	}
	for (uint32_t i = 0; i < program->nranks; i++) {
		pthread_join(threads[i], NULL);
		CHECK_EQ(runners[i].nwrong, 0);
	}
}

#endif
