/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine predicts which chunks arrive next, and their places. The *place* of a chunk
 * is the address in the user's memory where the chunk's payload belongs.
 */
#include "engine/predictor.h"

#include "check.h"

#define NRANKS 3
#define BLOCK_CHUNKS 20
#define CHUNK_BYTES 8
#define TAIL_BYTES 3 /* the payload of a block's last chunk */
#define BLOCK_BYTES ((BLOCK_CHUNKS - 1) * CHUNK_BYTES + TAIL_BYTES)
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)
#define THIS_RANK 1
#define CHANNEL (UINT64_C(77) << 16)
#define EPOCH 5

/* All that a predictor needs: a request, and parts of its operation. */
struct stage {
	struct mmc_op op;
	struct mmc_request request;
	struct mmc_predictor predictor;
	struct mmc_cursor cursor;
	struct mmc_chain chains[NRANKS];
	uint64_t words[1];		    /* of the bitmap `claimed` */
	uint8_t base[NRANKS * BLOCK_BYTES]; /* the blocks of all ranks */
};

/* Initializes the rest of a stage whose operation already has its layout. */
static void fill_stage(struct stage *stage, uint32_t nchains)
{
	struct mmc_op *op = &stage->op;

	mmc_schedule_init(&op->schedule, NULL, &op->layout, nchains, UINT32_MAX,
			  UINT32_MAX);
	mmc_bitmap_init(&op->claimed, stage->words, NCHUNKS);
	op->repair.loss.chains = stage->chains;
	op->config.rank = THIS_RANK;
	op->config.channel = CHANNEL;
	op->config.epoch = EPOCH;
	stage->request.op = op;
	stage->request.base = stage->base;
	stage->predictor = mmc_request_predictor(&stage->request);
}

/* Initializes a stage for an Allgather of equal blocks in `nchains` chains. */
static void open_stage(struct stage *stage, uint32_t nchains)
{
	memset(stage, 0, sizeof(*stage));
	CHECK_EQ(mmc_layout_init(&stage->op.layout, NRANKS, BLOCK_BYTES,
				 CHUNK_BYTES),
		 0);
	fill_stage(stage, nchains);
}

/* Predicts the next arrival. Returns its chunk, or NCHUNKS if the chunk has no place. */
static uint32_t next(struct stage *stage)
{
	struct mmc_prediction prediction;

	stage->predictor.predict(stage->predictor.context, &stage->cursor,
				 &prediction, 1);
	return prediction.place != NULL ? prediction.index : NCHUNKS;
}

/* Moves the cursor past the next `count` arrivals. */
static void seek(struct stage *stage, uint32_t count)
{
	stage->predictor.seek(stage->predictor.context, &stage->cursor, count);
}

static void the_header_names_the_operation(void)
{
	struct stage stage;

	open_stage(&stage, 2);
	CHECK_EQ(stage.predictor.header.channel, CHANNEL);
	CHECK_EQ(stage.predictor.header.epoch, EPOCH);
	CHECK_EQ(stage.predictor.nsubgroups, 2);
}

/* seek() skips the chunks seen so far and `count` more. */
static void chunks_follow_those_seen_and_those_skipped(void)
{
	struct stage stage;

	open_stage(&stage, 1);
	stage.chains[0].seen = 3;
	seek(&stage, 2);
	CHECK_EQ(next(&stage), 5);
	CHECK_EQ(next(&stage), 6);
}

/*
 * This rank has already accepted the payload of a claimed chunk, so the chunk is
 * predicted without a place. The chunks before and after it have places.
 */
static void a_claimed_chunk_gets_no_place(void)
{
	struct stage stage;

	open_stage(&stage, 1);
	mmc_bitmap_test_and_set(&stage.op.claimed, 1);
	seek(&stage, 0);
	CHECK_EQ(next(&stage), 0);
	CHECK_EQ(next(&stage), NCHUNKS);
	CHECK_EQ(next(&stage), 2);
}

/*
 * If the network returns a rank's multicast to the rank itself, this rank's own chunks
 * are predicted, but without a place. Otherwise the prediction skips them.
 */
static void own_chunks_loop_back_or_are_skipped(void)
{
	struct stage stage;

	for (int loops_back = 0; loops_back < 2; loops_back++) {
		open_stage(&stage, 1);
		stage.cursor.loops = loops_back != 0;
		stage.chains[0].seen = BLOCK_CHUNKS - 1;
		seek(&stage, 0);
		CHECK_EQ(next(&stage), BLOCK_CHUNKS - 1);
		CHECK_EQ(next(&stage), loops_back ? NCHUNKS : 2 * BLOCK_CHUNKS);
		seek(&stage, 3);
		CHECK_EQ(next(&stage),
			 loops_back ? NCHUNKS : 2 * BLOCK_CHUNKS + 2);
	}
}

/* Predictions beyond the last chunk of a chain have no place. */
static void no_place_follows_the_last_chunk(void)
{
	struct stage stage;

	open_stage(&stage, 1);
	stage.chains[0].seen = NCHUNKS - 1;
	seek(&stage, 0);
	CHECK_EQ(next(&stage), NCHUNKS - 1);
	CHECK_EQ(next(&stage), NCHUNKS);
	CHECK_EQ(next(&stage), NCHUNKS);
	seek(&stage, NCHUNKS);
	CHECK_EQ(next(&stage), NCHUNKS);
}

/* One call for many arrivals predicts the same as one call for each arrival. */
static void a_batch_is_predicted_as_single_chunks_are(void)
{
	for (uint32_t nchains = 1; nchains <= NRANKS; nchains++) {
		struct mmc_prediction all[NCHUNKS + 2];
		struct stage stage;

		open_stage(&stage, nchains);
		mmc_bitmap_test_and_set(&stage.op.claimed, BLOCK_CHUNKS - 1);
		seek(&stage, 0);
		stage.predictor.predict(stage.predictor.context, &stage.cursor,
					all, NCHUNKS + 2);
		seek(&stage, 0);
		for (uint32_t i = 0; i < NCHUNKS + 2; i++)
			CHECK_EQ(next(&stage),
				 all[i].place != NULL ? all[i].index : NCHUNKS);
	}
}

/*
 * Each chunk of the other ranks is predicted once. For the predicted place of a chunk,
 * locate() returns the chunk's subgroup and position.
 */
static void locate_finds_each_predicted_chunk(void)
{
	struct stage stage;

	for (uint32_t nchains = 1; nchains <= NRANKS; nchains++) {
		uint32_t nfound = 0;

		open_stage(&stage, nchains);
		/* Chain number i is multicast in subgroup i. */
		for (uint32_t chain = 0; chain < nchains; chain++) {
			struct mmc_prediction all[NCHUNKS];

			stage.cursor.subgroup = chain;
			seek(&stage, 0);
			stage.predictor.predict(stage.predictor.context,
						&stage.cursor, all, NCHUNKS);
			for (uint32_t i = 0; i < NCHUNKS; i++) {
				uint32_t number = all[i].index % BLOCK_CHUNKS;
				uint32_t subgroup, position;

				if (all[i].place == NULL)
					continue;
				nfound++;
				CHECK_EQ(all[i].source,
					 all[i].index / BLOCK_CHUNKS);
				CHECK_EQ(all[i].place - stage.base,
					 all[i].source * BLOCK_BYTES +
						 number * CHUNK_BYTES);
				CHECK_EQ(all[i].nbytes,
					 number == BLOCK_CHUNKS - 1
						 ? TAIL_BYTES
						 : CHUNK_BYTES);
				CHECK(stage.predictor.locate(
					stage.predictor.context, all[i].place,
					&subgroup, &position));
				CHECK_EQ(subgroup, chain);
				CHECK_EQ(position, all[i].position);
			}
		}
		CHECK_EQ(nfound, NCHUNKS - BLOCK_CHUNKS);
	}
}

/* locate() finds no chunk at addresses outside the blocks. */
static void locate_finds_nothing_elsewhere(void)
{
	const uint8_t elsewhere = 0;
	uint32_t subgroup, position;
	struct stage stage;

	open_stage(&stage, 1);
	CHECK(!stage.predictor.locate(stage.predictor.context,
				      stage.base + sizeof(stage.base),
				      &subgroup, &position));
	CHECK(!stage.predictor.locate(stage.predictor.context, &elsewhere,
				      &subgroup, &position));
}

/* A Bcast, whose only block is the root's, is predictable. */
static void the_chunks_of_a_bcast_are_predicted(void)
{
	const uint32_t root = 2;
	const uint32_t chunk = 7;
	uint32_t subgroup, position;
	struct stage stage;

	memset(&stage, 0, sizeof(stage));
	CHECK_EQ(mmc_layout_init_sole(&stage.op.layout, NRANKS, root,
				      BLOCK_BYTES, CHUNK_BYTES),
		 0);
	fill_stage(&stage, 1);
	CHECK(mmc_request_is_predictable(&stage.request));
	seek(&stage, chunk);
	CHECK_EQ(next(&stage), chunk);
	CHECK(stage.predictor.locate(stage.predictor.context,
				     stage.base + chunk * CHUNK_BYTES,
				     &subgroup, &position));
	CHECK_EQ(position, chunk);
}

static void uneven_blocks_are_not_predictable(void)
{
	const uint64_t blocks_bytes[NRANKS] = { 40, 8, 16 };
	_Alignas(64) uint8_t memory[1024];
	struct stage stage;

	open_stage(&stage, 1);
	CHECK(mmc_request_is_predictable(&stage.request));
	CHECK_EQ(mmc_layout_init_each(&stage.op.layout, NRANKS, blocks_bytes,
				      CHUNK_BYTES),
		 0);
	CHECK(mmc_layout_bytes(&stage.op.layout) <= sizeof(memory));
	mmc_layout_tabulate(&stage.op.layout, memory, blocks_bytes);
	CHECK(!mmc_request_is_predictable(&stage.request));
}

/*
 * Equal blocks are not predictable if there are gaps between them. `request.operation`
 * is the operation as the caller has described it, while `request.op` is the core's
 * state of it. The description keeps the blocks' offsets only if there are gaps;
 * otherwise its `offsets_bytes` is NULL.
 */
static void blocks_with_gaps_are_not_predictable(void)
{
	const uint64_t offsets_bytes[NRANKS] = { 0, 2 * BLOCK_BYTES,
						 5 * BLOCK_BYTES };
	struct stage stage;

	open_stage(&stage, 1);
	stage.request.operation.offsets_bytes = offsets_bytes;
	CHECK(!mmc_request_is_predictable(&stage.request));
}

CHECK_MAIN(CHECK_TEST(the_header_names_the_operation),
	   CHECK_TEST(chunks_follow_those_seen_and_those_skipped),
	   CHECK_TEST(a_claimed_chunk_gets_no_place),
	   CHECK_TEST(own_chunks_loop_back_or_are_skipped),
	   CHECK_TEST(no_place_follows_the_last_chunk),
	   CHECK_TEST(a_batch_is_predicted_as_single_chunks_are),
	   CHECK_TEST(locate_finds_each_predicted_chunk),
	   CHECK_TEST(locate_finds_nothing_elsewhere),
	   CHECK_TEST(the_chunks_of_a_bcast_are_predicted),
	   CHECK_TEST(uneven_blocks_are_not_predictable),
	   CHECK_TEST(blocks_with_gaps_are_not_predictable))
