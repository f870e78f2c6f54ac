/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank that sends in virtual time, and what it hears of the others. */
#ifndef MMC_TESTS_SENDER_H
#define MMC_TESTS_SENDER_H

#include "check.h"
#include "core/flow/turn.h"
#include "core/repair/silence.h"
#include "core/types.h"

#define CHUNK_BYTES 1000

/* At 1 GB/s a lone chain takes a microsecond for each chunk. */
static const struct mmc_path path = {
	.srtt_ns = 100 * MMC_US_NS,
	.rate_bytes_per_s = 1000000000,
	.lag_ns = 5 * MMC_MS_NS,
};

struct sender {
	struct mmc_layout layout;
	struct mmc_schedule schedule;
	struct mmc_bitmap claimed;
	struct mmc_loss loss;
	struct mmc_watermark watermark;
	struct mmc_turn turn;
	uint32_t rank;
	uint64_t *words;
	uint8_t *loss_memory;
	uint8_t *watermark_memory;
	uint64_t now_ns;
	unsigned nquestions;
};

static void sender_open(struct sender *at, uint32_t rank, uint32_t nranks,
			uint32_t block_chunks, uint32_t nchains,
			uint32_t window_chunks)
{
	struct mmc_block own;

	*at = (struct sender){ .now_ns = MMC_S_NS, .rank = rank };
	CHECK_EQ(mmc_layout_init(&at->layout, nranks,
				 (uint64_t)block_chunks * CHUNK_BYTES,
				 CHUNK_BYTES),
		 0);
	mmc_schedule_init(&at->schedule, NULL, &at->layout, nchains,
			  window_chunks * CHUNK_BYTES, UINT32_MAX);
	at->words = malloc(mmc_bitmap_bytes(at->layout.nchunks) + 1);
	at->loss_memory =
		malloc(mmc_loss_bytes(at->layout.nchunks, nranks, nranks));
	at->watermark_memory = malloc(mmc_watermark_bytes(nranks, nranks));
	mmc_bitmap_init(&at->claimed, at->words, at->layout.nchunks);
	own = mmc_layout_block(&at->layout, rank);
	mmc_bitmap_set_run(&at->claimed,
			   (struct mmc_run){ own.first, own.nchunks });
	mmc_loss_init(&at->loss, at->loss_memory,
		      &(struct mmc_loss_config){
			      .policy = mmc_repair_policy(MMC_REPAIR_NAK),
			      .rank = rank,
			      .nchunks = at->layout.nchunks,
			      .nchains = nranks,
			      .seed = 18,
		      });
	mmc_loss_begin(&at->loss, &at->schedule, &at->claimed,
		       &(struct mmc_loss_terms){
			       .srtt_ns = path.srtt_ns,
			       .budget_chunks = 1000,
		       },
		       at->now_ns);
	mmc_watermark_init(&at->watermark, at->watermark_memory, rank,
			   &at->schedule);
	mmc_turn_init(&at->turn, rank, &at->schedule, at->now_ns);
}

static void sender_close(struct sender *at)
{
	free(at->words);
	free(at->loss_memory);
	free(at->watermark_memory);
}

static const struct mmc_chain *chain_of(const struct sender *at)
{
	return &at->loss.chains[at->turn.chain];
}

/* Delivers `count` chunks of `rank` by multicast, from its chunk `place` on. */
static void hear(struct sender *at, uint32_t rank, uint32_t place,
		 uint32_t count)
{
	const struct mmc_block block = mmc_layout_block(&at->layout, rank);
	uint32_t chain = mmc_schedule_chain(&at->schedule, &block);

	for (uint32_t i = place; i < place + count; i++) {
		struct mmc_sequence *sequence = mmc_loss_follow(
			&at->loss, &at->claimed, &block, at->now_ns);

		mmc_bitmap_test_and_set(&at->claimed, block.first + i);
		at->loss.chains[chain].nheard++;
		mmc_loss_hear(&at->loss, &at->loss.chains[chain], sequence, i,
			      1, at->now_ns);
		mmc_loss_on_claimed(&at->loss, chain, sequence, i,
				    (struct mmc_run){ .first = block.first + i,
						      .count = 1 },
				    at->now_ns);
	}
	mmc_watermark_drain(&at->watermark, chain,
			    at->loss.chains[chain].ndrained);
}

static bool next(struct sender *at, const struct mmc_path *along,
		 struct mmc_run *run)
{
	const struct mmc_block own = mmc_layout_block(&at->layout, at->rank);

	at->nquestions += mmc_turn_take_question(
		&at->turn, &at->loss, &at->watermark, along, at->now_ns);
	if (!mmc_turn_next(&at->turn, &at->loss, &at->watermark, along,
			   at->now_ns, run))
		return false;
	mmc_loss_sent(&at->loss, &at->claimed, &own, *run, at->now_ns);
	mmc_watermark_drain(&at->watermark, at->turn.chain,
			    chain_of(at)->ndrained);
	return true;
}

/* Sends what may be sent now, which must be in order; returns the number of chunks. */
static uint32_t send_all(struct sender *at)
{
	uint32_t nsent = 0;
	struct mmc_run run;

	while (next(at, &path, &run)) {
		CHECK(run.count >= 1);
		CHECK(run.count <= at->schedule.batch_chunks);
		CHECK_EQ(run.first + run.count, at->turn.next);
		nsent += run.count;
		if (!CHECK(at->turn.next <= at->turn.nchunks))
			break;
	}
	return nsent;
}

/* Moves on to the next deadline; returns whether the rank must say what it has sent. */
static bool wait_for_deadline(struct sender *at)
{
	uint64_t next_ns = mmc_turn_deadline(&at->turn);

	CHECK(next_ns > at->now_ns);
	at->now_ns = next_ns;
	return mmc_turn_take_probe(&at->turn, at->now_ns);
}

#endif
