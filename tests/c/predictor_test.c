/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine predicts which chunks arrive next, and where they belong. */
#include "engine/predictor.h"

#include "check.h"

#define NRANKS 3
#define BLOCK_CHUNKS 20
#define CHUNK_BYTES 8
#define TAIL_BYTES 3 /* of the last chunk of a block */
#define BLOCK_BYTES ((BLOCK_CHUNKS - 1) * CHUNK_BYTES + TAIL_BYTES)
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)
#define OWN 1 /* this rank */

struct stage {
	struct mmc_op op;
	struct mmc_request request;
	struct mmc_predictor predictor;
	struct mmc_cursor cursor;
	struct mmc_chain chains[NRANKS];
	uint64_t words[1];
	uint8_t base[NRANKS * BLOCK_BYTES];
};

static void fill_stage(struct stage *at, uint32_t nchains)
{
	struct mmc_op *op = &at->op;

	mmc_schedule_init(&op->schedule, NULL, &op->layout, nchains, UINT32_MAX,
			  UINT32_MAX);
	mmc_bitmap_init(&op->claimed, at->words, NCHUNKS);
	op->repair.loss.chains = at->chains;
	op->config.rank = OWN;
	op->config.channel = UINT64_C(77) << 16;
	op->config.epoch = 5;
	at->request.op = op;
	at->request.base = at->base;
	at->predictor = mmc_request_predictor(&at->request);
}

static void open_stage(struct stage *at, uint32_t nchains)
{
	memset(at, 0, sizeof(*at));
	CHECK_EQ(mmc_layout_init(&at->op.layout, NRANKS, BLOCK_BYTES,
				 CHUNK_BYTES),
		 0);
	fill_stage(at, nchains);
}

/* Predicts the next chunk; returns it, or NCHUNKS if it gets no place. */
static uint32_t next(struct stage *at)
{
	struct mmc_prediction prediction;

	at->predictor.predict(at->predictor.context, &at->cursor, &prediction,
			      1);
	return prediction.place != NULL ? prediction.index : NCHUNKS;
}

static void seek(struct stage *at, uint32_t count)
{
	at->predictor.seek(at->predictor.context, &at->cursor, count);
}

static void the_header_names_the_operation(void)
{
	struct stage at;

	open_stage(&at, 2);
	CHECK_EQ(at.predictor.header.channel, UINT64_C(77) << 16);
	CHECK_EQ(at.predictor.header.epoch, 5);
	CHECK_EQ(at.predictor.nsubgroups, 2);
}

/* After seek(), prediction starts past the chunks already seen, plus `count` more. */
static void chunks_follow_those_seen_and_those_skipped(void)
{
	struct stage at;

	open_stage(&at, 1);
	at.chains[0].seen = 3;
	seek(&at, 2);
	CHECK_EQ(next(&at), 5);
	CHECK_EQ(next(&at), 6);
}

static void nothing_aims_at_what_is_here_already(void)
{
	struct stage at;

	open_stage(&at, 1);
	mmc_bitmap_test_and_set(&at.op.claimed, 1);
	seek(&at, 0);
	CHECK_EQ(next(&at), 0);
	CHECK_EQ(next(&at), NCHUNKS);
	CHECK_EQ(next(&at), 2);
}

/* This rank's chunks use up receives only if its multicast comes back. */
static void own_chunks_come_back_or_not(void)
{
	struct stage at;

	for (int loops_back = 0; loops_back < 2; loops_back++) {
		open_stage(&at, 1);
		at.cursor.loops = loops_back != 0;
		at.chains[0].seen = BLOCK_CHUNKS - 1;
		seek(&at, 0);
		CHECK_EQ(next(&at), BLOCK_CHUNKS - 1);
		CHECK_EQ(next(&at), loops_back ? NCHUNKS : 2 * BLOCK_CHUNKS);
		seek(&at, 3);
		CHECK_EQ(next(&at),
			 loops_back ? NCHUNKS : 2 * BLOCK_CHUNKS + 2);
	}
}

static void nothing_aims_beyond_the_end(void)
{
	struct stage at;

	open_stage(&at, 1);
	at.chains[0].seen = NCHUNKS - 1;
	seek(&at, 0);
	CHECK_EQ(next(&at), NCHUNKS - 1);
	CHECK_EQ(next(&at), NCHUNKS);
	CHECK_EQ(next(&at), NCHUNKS);
	seek(&at, NCHUNKS);
	CHECK_EQ(next(&at), NCHUNKS);
}

/* One call for many chunks predicts the same as a call for each. */
static void a_batch_is_predicted_as_single_chunks_are(void)
{
	for (uint32_t nchains = 1; nchains <= NRANKS; nchains++) {
		struct mmc_prediction all[NCHUNKS + 2];
		struct stage at;

		open_stage(&at, nchains);
		mmc_bitmap_test_and_set(&at.op.claimed, BLOCK_CHUNKS - 1);
		seek(&at, 0);
		at.predictor.predict(at.predictor.context, &at.cursor, all,
				     NCHUNKS + 2);
		seek(&at, 0);
		for (uint32_t i = 0; i < NCHUNKS + 2; i++)
			CHECK_EQ(next(&at),
				 all[i].place != NULL ? all[i].index : NCHUNKS);
	}
}

/* Each chunk of other ranks is predicted once; locate() finds it again from its place. */
static void places_and_positions_belong_together(void)
{
	struct stage at;

	for (uint32_t nchains = 1; nchains <= NRANKS; nchains++) {
		uint32_t nfound = 0;

		open_stage(&at, nchains);
		/* Each chain is multicast in the subgroup of its number. */
		for (uint32_t chain = 0; chain < nchains; chain++) {
			struct mmc_prediction all[NCHUNKS];

			at.cursor.subgroup = chain;
			seek(&at, 0);
			at.predictor.predict(at.predictor.context, &at.cursor,
					     all, NCHUNKS);
			for (uint32_t i = 0; i < NCHUNKS; i++) {
				uint32_t number = all[i].index % BLOCK_CHUNKS;
				uint32_t subgroup, position;

				if (all[i].place == NULL)
					continue;
				nfound++;
				CHECK_EQ(all[i].source,
					 all[i].index / BLOCK_CHUNKS);
				CHECK_EQ(all[i].place - at.base,
					 all[i].source * BLOCK_BYTES +
						 number * CHUNK_BYTES);
				CHECK_EQ(all[i].nbytes,
					 number == BLOCK_CHUNKS - 1
						 ? TAIL_BYTES
						 : CHUNK_BYTES);
				CHECK(at.predictor.locate(
					at.predictor.context, all[i].place,
					&subgroup, &position));
				CHECK_EQ(subgroup, chain);
				CHECK_EQ(position, all[i].position);
			}
		}
		CHECK_EQ(nfound, NCHUNKS - BLOCK_CHUNKS);
	}
}

static void other_memory_is_no_place(void)
{
	uint32_t subgroup, position;
	struct stage at;

	open_stage(&at, 1);
	CHECK(!at.predictor.locate(&at.request, at.base + sizeof(at.base),
				   &subgroup, &position));
	CHECK(!at.predictor.locate(&at.request,
				   (const uint8_t *)&at.request.base, &subgroup,
				   &position));
}

/* A Bcast, which has one sender and one chain, is predictable. */
static void a_roots_chunks_are_predicted(void)
{
	uint32_t subgroup, position;
	struct stage at;

	memset(&at, 0, sizeof(at));
	CHECK_EQ(mmc_layout_init_sole(&at.op.layout, NRANKS, 2, BLOCK_BYTES,
				      CHUNK_BYTES),
		 0);
	fill_stage(&at, 1);
	CHECK(mmc_request_is_predictable(&at.request));
	seek(&at, 7);
	CHECK_EQ(next(&at), 7);
	CHECK(at.predictor.locate(&at.request, at.base + 7 * CHUNK_BYTES,
				  &subgroup, &position));
	CHECK_EQ(position, 7);
}

static void uneven_blocks_are_not_predictable(void)
{
	const uint64_t blocks_bytes[NRANKS] = { 40, 8, 16 };
	_Alignas(64) uint8_t memory[1024];
	struct stage at;

	open_stage(&at, 1);
	CHECK(mmc_request_is_predictable(&at.request));
	CHECK_EQ(mmc_layout_init_each(&at.op.layout, NRANKS, blocks_bytes,
				      CHUNK_BYTES),
		 0);
	CHECK(mmc_layout_bytes(&at.op.layout) <= sizeof(memory));
	mmc_layout_tabulate(&at.op.layout, memory, blocks_bytes);
	CHECK(!mmc_request_is_predictable(&at.request));
}

/* An Allgatherv of equal blocks may still put them anywhere in the user's memory. */
static void blocks_with_gaps_are_not_predictable(void)
{
	const uint64_t offsets_bytes[NRANKS] = { 0, 2 * BLOCK_BYTES,
						 5 * BLOCK_BYTES };
	struct stage at;

	open_stage(&at, 1);
	at.request.operation.offsets_bytes = offsets_bytes;
	CHECK(!mmc_request_is_predictable(&at.request));
}

CHECK_MAIN(CHECK_TEST(the_header_names_the_operation),
	   CHECK_TEST(chunks_follow_those_seen_and_those_skipped),
	   CHECK_TEST(nothing_aims_at_what_is_here_already),
	   CHECK_TEST(own_chunks_come_back_or_not),
	   CHECK_TEST(nothing_aims_beyond_the_end),
	   CHECK_TEST(a_batch_is_predicted_as_single_chunks_are),
	   CHECK_TEST(places_and_positions_belong_together),
	   CHECK_TEST(other_memory_is_no_place),
	   CHECK_TEST(a_roots_chunks_are_predicted),
	   CHECK_TEST(uneven_blocks_are_not_predictable),
	   CHECK_TEST(blocks_with_gaps_are_not_predictable))
