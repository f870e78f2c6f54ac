/* SPDX-License-Identifier: BSD-3-Clause */
/* A fetcher of one rank in virtual time, and the neighbour whose memory it reads. */
#ifndef MMC_TESTS_FETCHER_WORLD_H
#define MMC_TESTS_FETCHER_WORLD_H

#include "check.h"
#include "core/repair/fetcher.h"
#include "core/wire/message.h"
#include "support/memory.h"
#include "support/prng.h"

#define NRANKS 4
#define BLOCK_CHUNKS 50
#define NCHUNKS (NRANKS * BLOCK_CHUNKS)
#define NWORDS ((NCHUNKS + 63) / 64)
#define SRTT_NS (50 * MMC_US_NS)
#define GENERATION 77

/* The fetcher of rank 2, whose left neighbour is rank 1. */
struct world {
	struct mmc_layout layout;
	struct mmc_fetcher fetcher;
	struct mmc_bitmap claimed;
	uint64_t claimed_words[NWORDS];
	uint64_t held[NWORDS + 1]; /* the neighbour's bitmap and generation */
	uint8_t *memory;
	uint64_t now_ns;
	uint32_t nchunks_read;
};

static inline void open_world(struct world *at, uint32_t read_bytes)
{
	*at = (struct world){ .now_ns = MMC_S_NS };
	CHECK_EQ(mmc_layout_init(&at->layout, NRANKS, BLOCK_CHUNKS * 100, 100),
		 0);
	at->memory = aligned_alloc(MMC_ALIGN_BYTES, mmc_fetcher_bytes(NCHUNKS));
	mmc_fetcher_init(&at->fetcher, at->memory, 2, &at->layout, read_bytes);
	mmc_fetcher_begin(&at->fetcher, SRTT_NS);
	mmc_bitmap_init(&at->claimed, at->claimed_words, NCHUNKS);
	at->held[NWORDS] = GENERATION;
}

static inline void close_world(struct world *at)
{
	free(at->memory);
}

static inline void learn(struct world *at, uint64_t generation, bool has_data)
{
	const struct mmc_advert advert = {
		.generation = generation,
		.has_data = has_data,
	};

	mmc_fetcher_learn(&at->fetcher, &advert, at->now_ns);
}

static inline void want(struct world *at, uint32_t first, uint32_t count)
{
	mmc_fetcher_want(&at->fetcher, &at->claimed,
			 (struct mmc_run){ .first = first, .count = count },
			 at->now_ns);
}

static inline void hold(struct world *at, uint32_t chunk)
{
	at->held[chunk / 64] |= UINT64_C(1) << chunk % 64;
}

static inline bool next_map(struct world *at, struct mmc_run *words)
{
	if (!mmc_fetcher_map(&at->fetcher, &at->claimed, at->now_ns, words))
		return false;
	CHECK(words->count > 0 && words->first + words->count <= NWORDS);
	return true;
}

/* Completes the read of `words` with what the neighbour holds. */
static inline bool bitmap_arrives(struct world *at, struct mmc_run words)
{
	uint64_t bytes[NWORDS + 1];

	memcpy(bytes, at->held + words.first, words.count * 8);
	bytes[words.count] = at->held[NWORDS];
	return mmc_fetcher_mapped(&at->fetcher, words, (const uint8_t *)bytes,
				  at->now_ns);
}

/* Does all reads that are due; returns how many chunks they brought. */
static inline uint32_t read_all(struct world *at)
{
	uint32_t nchunks = 0;
	struct mmc_run run;

	while (next_map(at, &run))
		CHECK(bitmap_arrives(at, run));
	while (mmc_fetcher_data(&at->fetcher, &at->claimed, &run)) {
		nchunks += run.count;
		for (uint32_t c = run.first; c < run.first + run.count; c++) {
			CHECK(at->held[c / 64] >> c % 64 & 1);
			CHECK(!mmc_bitmap_test_and_set(&at->claimed, c));
		}
		CHECK(mmc_fetcher_read_ended(&at->fetcher, run, GENERATION));
	}
	at->nchunks_read += nchunks;
	return nchunks;
}

#endif
