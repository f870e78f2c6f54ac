/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiver in virtual time, for the tests of core/repair/loss.h and
 * core/repair/silence.h. Every request is checked: none is for a chunk that is claimed,
 * and none comes within a retry interval of the last one for the same chunk.
 */
#ifndef MMC_TESTS_RECEIVER_H
#define MMC_TESTS_RECEIVER_H

#include "check.h"
#include "core/plan/layout.h"
#include "core/repair/silence.h"
#include "core/types.h"

#define NRANKS_MAX 48
#define NCHUNKS_MAX 3000
#define SRTT_NS (100 * MMC_US_NS)
#define END_NS (10 * MMC_S_NS)

/* More than any test loses at a time; tests of the budget set their own. */
#define BUDGET_CHUNKS 1000

/* What all have drained: nothing, as windows are longer than any chain. */
static const uint32_t no_windows[NRANKS_MAX + 1];

struct receiver {
	struct mmc_layout layout;
	struct mmc_schedule schedule;
	struct mmc_loss loss;
	struct mmc_bitmap claimed;
	uint8_t *memory;
	uint64_t *words;
	uint64_t now_ns;
	uint32_t rank;
	unsigned nquestions;
	unsigned nasked[NCHUNKS_MAX];
	uint64_t asked_ns[NCHUNKS_MAX];
};

static inline void receiver_open(struct receiver *at, uint32_t nranks,
				 uint32_t block_chunks, uint32_t nchains,
				 enum mmc_repair repair)
{
	*at = (struct receiver){ .now_ns = MMC_S_NS };
	CHECK_EQ(mmc_layout_init(&at->layout, nranks,
				 (uint64_t)block_chunks * 100, 100),
		 0);
	mmc_schedule_init(&at->schedule, NULL, &at->layout, nchains, 100000,
			  UINT32_MAX);
	at->words = malloc(mmc_bitmap_bytes(at->layout.nchunks));
	at->memory = malloc(mmc_loss_bytes(at->layout.nchunks, nranks, nranks));
	mmc_bitmap_init(&at->claimed, at->words, at->layout.nchunks);
	mmc_bitmap_set_run(&at->claimed,
			   (struct mmc_run){ .count = block_chunks });
	mmc_loss_init(&at->loss, at->memory,
		      &(struct mmc_loss_config){
			      .policy = mmc_repair_policy(repair),
			      .nchunks = at->layout.nchunks,
			      .nchains = nranks,
			      .seed = 18,
		      });
}

static inline void receiver_close(struct receiver *at)
{
	free(at->words);
	free(at->memory);
}

static inline void begin(struct receiver *at)
{
	const struct mmc_loss_terms terms = {
		.srtt_ns = SRTT_NS,
		.budget_chunks = BUDGET_CHUNKS,
	};

	mmc_loss_begin(&at->loss, &at->schedule, &at->claimed, &terms,
		       at->now_ns);
}

static inline struct mmc_block block_of(const struct receiver *at,
					uint32_t chunk)
{
	return mmc_layout_block(&at->layout,
				mmc_layout_owner(&at->layout, chunk));
}

/* Delivers a chunk other than by multicast. */
static inline void claim(struct receiver *at, uint32_t chunk)
{
	const struct mmc_block block = block_of(at, chunk);
	uint32_t chain = mmc_schedule_chain(&at->schedule, &block);

	if (mmc_bitmap_test_and_set(&at->claimed, chunk))
		return;
	mmc_loss_on_claimed(
		&at->loss, chain,
		mmc_chain_sequence(&at->loss.chains[chain],
				   mmc_schedule_turn(&at->schedule, &block)),
		chunk - block.first,
		(struct mmc_run){ .first = chunk, .count = 1 }, at->now_ns);
}

/* Delivers a chunk by multicast. */
static inline void hear(struct receiver *at, uint32_t chunk)
{
	const struct mmc_block block = block_of(at, chunk);
	uint32_t chain = mmc_schedule_chain(&at->schedule, &block);
	struct mmc_sequence *sequence;

	if (mmc_bitmap_test_and_set(&at->claimed, chunk))
		return;
	sequence = mmc_loss_follow(&at->loss, &at->claimed, &block, at->now_ns);
	at->loss.chains[chain].nheard++;
	mmc_loss_hear(&at->loss, &at->loss.chains[chain], sequence,
		      chunk - block.first, 1, at->now_ns);
	mmc_loss_on_claimed(&at->loss, chain, sequence, chunk - block.first,
			    (struct mmc_run){ .first = chunk, .count = 1 },
			    at->now_ns);
}

static inline void check_question(struct receiver *at, uint32_t repairer,
				  struct mmc_run run)
{
	CHECK(repairer < at->layout.nranks);
	CHECK(repairer != 0);
	CHECK(run.count > 0);
	if (!CHECK(run.first + run.count <= at->layout.nchunks))
		return;
	for (uint32_t c = run.first; c < run.first + run.count; c++) {
		uint64_t once_ns =
			mmc_loss_retry_ns(&at->loss, at->asked_ns[c]);

		CHECK(!mmc_bitmap_test(&at->claimed, c));
		CHECK(at->nasked[c] == 0 ||
		      at->asked_ns[c] + once_ns <= at->now_ns);
		at->asked_ns[c] = at->now_ns;
		at->nasked[c]++;
	}
}

/* Records that a chunk of this rank's block has been sent. */
static inline void send_own(struct receiver *at, uint32_t index)
{
	const struct mmc_block own = mmc_layout_block(&at->layout, 0);
	struct mmc_run run = { .first = index, .count = 1 };

	mmc_loss_sent(&at->loss, &at->claimed, &own, run, at->now_ns);
}

/* Makes all requests that are due; returns the number of chunks. */
static inline unsigned ask(struct receiver *at)
{
	struct mmc_nak nak;
	unsigned nchunks = 0;

	while (mmc_loss_ask(&at->loss, &at->claimed, at->now_ns, &nak)) {
		CHECK(nak.nruns >= 1);
		if (!CHECK(nak.nruns <= MMC_RUNS_MAX))
			break;
		at->nquestions++;
		for (uint32_t i = 0; i < nak.nruns; i++) {
			check_question(at, nak.peer, nak.runs[i]);
			nchunks += nak.runs[i].count;
		}
	}
	return nchunks;
}

/* Requests all that gaps lack, as on an idle link; returns how many chunks. */
static inline unsigned ask_for_gaps(struct receiver *at)
{
	at->now_ns = at->loss.gap_ns;
	CHECK_EQ(ask(at), 0);
	at->now_ns = at->loss.overdue_ns;
	return ask(at);
}

/* Steps from deadline to deadline until `chunk` is requested. */
static inline bool waits_for_question(struct receiver *at, uint32_t chunk)
{
	unsigned before = at->nasked[chunk];
	const struct mmc_sequence *silent;

	while (at->nasked[chunk] == before) {
		uint64_t next_ns = mmc_loss_deadline(&at->loss);

		if (!CHECK(next_ns < END_NS))
			return false;
		at->now_ns = next_ns > at->now_ns ? next_ns : at->now_ns + 1;
		ask(at);
		while ((silent = mmc_silence_ask(&at->loss, &at->claimed,
						 no_windows, at->now_ns)))
			CHECK(silent->rank != 0);
	}
	return true;
}

#endif
