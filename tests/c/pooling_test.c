/* SPDX-License-Identifier: BSD-3-Clause */
/* Parity answers several ranks at once, also those that have yet to ask. */
#include "core/repair/pooling.h"

#include "check.h"
#include "support/memory.h"

#define NRANKS 8
#define NCHUNKS 64
#define K 16
#define M 2
#define ROWS_MAX 20

struct at {
	struct mmc_repairer repairer;
	struct mmc_pooling *pooling;
	struct mmc_bitmap present;
	uint64_t words[1];
	uint8_t *memory;
	uint8_t *pooling_memory;
	uint64_t now_ns;
};

static void pool_open(struct at *at)
{
	const struct mmc_repairer_config config = {
		.present = &at->present,
		.own = { .first = 0, .count = NCHUNKS },
		.gathers = true,
		.multicast_min = 3,
		.gather_ns = 1000,
		.rest_ns = 5000,
	};

	at->now_ns = 1000000;
	mmc_bitmap_init(&at->present, at->words, NCHUNKS);
	mmc_bitmap_set_run(&at->present, config.own);
	at->memory = aligned_alloc(MMC_ALIGN_BYTES,
				   mmc_part_bytes(mmc_repairer_bytes(NCHUNKS)));
	mmc_repairer_init(&at->repairer, at->memory, &config);
	at->repairer.pools = true;
	at->pooling_memory = aligned_alloc(
		MMC_ALIGN_BYTES, mmc_pooling_bytes(NCHUNKS, K, NRANKS));
	at->pooling = mmc_pooling_init(at->pooling_memory, NCHUNKS, K, NRANKS);
	at->pooling->grouping = (struct mmc_grouping){
		.data_chunks = K,
		.parity_chunks = M,
		.depth = 1,
	};
	at->pooling->nsent = NCHUNKS;
}

static void pool_close(struct at *at)
{
	free(at->memory);
	free(at->pooling_memory);
}

static void ask(struct at *at, uint32_t peer, uint32_t first, uint32_t count)
{
	mmc_repairer_on_nak(&at->repairer, peer,
			    (struct mmc_run){ .first = first, .count = count },
			    at->now_ns);
}

static bool next(struct at *at, uint32_t *group, struct mmc_run *rows)
{
	return mmc_pooling_next(at->pooling, &at->repairer, ROWS_MAX,
				at->now_ns, group, rows);
}

/* Of a group as many rows are sent as the rank needs that lacks most, behind those of m. */
static void one_row_mends_several_ranks(void)
{
	struct at at;
	struct mmc_run rows;
	uint32_t group;

	pool_open(&at);
	ask(&at, 1, 16, 1);
	ask(&at, 2, 19, 2);
	ask(&at, 3, 31, 1);
	CHECK(!next(&at, &group, &rows)); /* they are still gathered */
	at.now_ns += 1000;
	CHECK(next(&at, &group, &rows));
	CHECK_EQ(group, 1);
	CHECK_EQ(rows.first, M);
	CHECK_EQ(rows.count, 2);
	CHECK_EQ(at.repairer.naks.count, 0);
	CHECK(!next(&at, &group, &rows));
	/* What was just sent is not sent again; later, it is by other rows. */
	ask(&at, 1, 16, 1);
	CHECK_EQ(at.repairer.naks.count, 0);
	at.now_ns += 20000;
	ask(&at, 1, 16, 1);
	ask(&at, 2, 20, 1);
	at.now_ns += 1000;
	CHECK(next(&at, &group, &rows));
	CHECK_EQ(rows.first, M + 2);
	CHECK_EQ(rows.count, 1);
	pool_close(&at);
}

/* Sends the chunks that the repairer would, which must go to `peer`. */
static void send_chunks(struct at *at, uint32_t peer)
{
	struct mmc_run run;
	uint32_t to;

	CHECK(mmc_repairer_next(&at->repairer, at->now_ns, ROWS_MAX, &to,
				&run));
	CHECK_EQ(to, peer);
}

/* A rank that is the only one to ask is sent chunks: parity would serve no other. */
static void the_only_loser_gets_chunks(void)
{
	struct at at;
	struct mmc_run rows;
	uint32_t group;

	pool_open(&at);
	for (uint32_t chunk = 3; chunk < 60; chunk += 9) {
		ask(&at, 1, chunk, 1);
		at.now_ns += 1000;
		CHECK(!next(&at, &group, &rows));
		send_chunks(&at, 1);
	}
	pool_close(&at);
}

/* If another rank was answered last, further ranks probably lack chunks of the group, too. */
static void another_loser_gets_parity(void)
{
	struct at at;
	struct mmc_run rows;
	uint32_t group;

	pool_open(&at);
	ask(&at, 1, 3, 1);
	at.now_ns += 1000;
	CHECK(!next(&at, &group, &rows));
	send_chunks(&at, 1);
	ask(&at, 2, 40, 2);
	at.now_ns += 1000;
	CHECK(next(&at, &group, &rows));
	CHECK_EQ(group, 2);
	CHECK_EQ(rows.first, M);
	CHECK_EQ(rows.count, 2);
	pool_close(&at);
}

/* A rank that asks while rows are on their way is sent only as many more as it needs. */
static void rows_under_way_count(void)
{
	struct at at;
	struct mmc_run rows;
	uint32_t group;

	pool_open(&at);
	ask(&at, 1, 16, 1);
	ask(&at, 2, 19, 1);
	at.now_ns += 1000;
	CHECK(next(&at, &group, &rows));
	CHECK_EQ(rows.count, 1);
	ask(&at, 3, 20, 1);
	at.now_ns += 1000;
	CHECK(!next(&at, &group, &rows));
	CHECK_EQ(at.repairer.naks.count, 0);
	ask(&at, 4, 22, 3);
	at.now_ns += 1000;
	CHECK(next(&at, &group, &rows));
	CHECK_EQ(rows.first, M + 1);
	CHECK_EQ(rows.count, 2);
	/* After a resting time, each rank has either received the last rows or lost them. */
	at.now_ns += 10000;
	ask(&at, 5, 25, 1);
	at.now_ns += 1000;
	CHECK(next(&at, &group, &rows));
	CHECK_EQ(rows.first, M + 3);
	CHECK_EQ(rows.count, 1);
	pool_close(&at);
}

/* A group of which some was not sent yet has no parity: others would lack all the rest. */
static void groups_must_have_been_sent(void)
{
	struct at at;
	struct mmc_run rows;
	uint32_t group;

	pool_open(&at);
	at.pooling->nsent = 31;
	ask(&at, 1, 16, 1);
	ask(&at, 2, 17, 1);
	at.now_ns += 1000;
	CHECK(!next(&at, &group, &rows));
	at.pooling->nsent = 32;
	CHECK(next(&at, &group, &rows));
	pool_close(&at);
}

/* Chunks are sent again once all rows of a group have been. */
static void rows_end(void)
{
	struct at at;
	struct mmc_run rows;
	uint32_t group;

	pool_open(&at);
	at.pooling->groups[0].nrows = 255 - K - M - 1;
	ask(&at, 1, 0, 2);
	ask(&at, 2, 2, 2);
	at.now_ns += 1000;
	CHECK(!next(&at, &group, &rows));
	at.pooling->groups[0].nrows--;
	CHECK(next(&at, &group, &rows));
	CHECK_EQ(rows.first + rows.count, 255 - K);
	pool_close(&at);
}

CHECK_MAIN(CHECK_TEST(one_row_mends_several_ranks),
	   CHECK_TEST(the_only_loser_gets_chunks),
	   CHECK_TEST(another_loser_gets_parity),
	   CHECK_TEST(rows_under_way_count),
	   CHECK_TEST(groups_must_have_been_sent), CHECK_TEST(rows_end))
