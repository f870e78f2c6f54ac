/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads lost chunks from the left neighbour's memory: first the words of its bitmap
 * that stand for the wanted chunks, then the chunks that are present there, many at a
 * time. Chunks that the neighbour lacks are looked for again after one round trip, then
 * ever more rarely down to once a millisecond. Along the ring each chunk's chain of
 * neighbours ends at its owner, which had the chunk from the start.
 *
 * Nothing can be read before the neighbour's advert has arrived and says that its data
 * is registered: until then the neighbour is asked to register it. If the neighbour's
 * memory cannot be read, or not any more, the chunks are asked for by message. A chunk
 * that has been wanted for long is asked of its owner as well.
 */
#ifndef MMC_CORE_REPAIR_FETCHER_H
#define MMC_CORE_REPAIR_FETCHER_H

#include "core/plan/bitmap.h"
#include "core/plan/layout.h"
#include "core/wire/advert.h"
#include "support/timer.h"

/* Reads of an operation under way at a time. */
#define MMC_READS_MAX 16

/* Words of a bitmap that one read brings at most. */
#define MMC_READ_WORDS_MAX 512

struct mmc_fetcher {
	struct mmc_layout layout;
	uint32_t rank;
	struct mmc_advert advert; /* the left neighbour's, if `known` */
	bool known;
	/* Nothing can be read: chunks are asked for by message. */
	bool useless;
	uint32_t words_max;  /* the most words in one read of the bitmap */
	uint32_t chunks_max; /* the most chunks in one read of the data */
	/* Chunks wanted that were not here at the last look. */
	struct mmc_bitmap wanted;
	/* Wanted chunks to be fetched from the neighbour now. */
	struct mmc_bitmap due;
	struct mmc_bitmap reading; /* chunks being read */
	struct mmc_bitmap overdue; /* chunks wanted since the lease began */
	uint32_t due_from;	   /* no chunk below is due */
	uint32_t nreading;	   /* reads under way */
	uint32_t nmaps;		   /* reads of the bitmap under way */
	/* The word at which this look goes on; the number of words: no look. */
	uint32_t sweep_word;
	bool fresh;	  /* more chunks became wanted since it began */
	bool looked;	  /* this look has read words of the bitmap */
	bool found;	  /* this look has found wanted chunks */
	uint64_t poll_ns; /* when to look again */
	uint64_t interval_ns;
	uint64_t srtt_ns;
	struct mmc_backoff asking; /* requests for the advert */
	uint64_t lease_ns;    /* when the lease ends and owners are asked */
	bool lease_over;      /* owners are being asked */
	uint32_t lease_chunk; /* the next chunk to ask owners for */
	bool leased;	      /* owners were asked after the last lease */
	bool leasing;	      /* owners were asked after this lease */
};

/* The bytes of memory for `nchunks` chunks. */
size_t mmc_fetcher_bytes(uint32_t nchunks);

/*
 * Initializes a fetcher for `rank` in `memory`, mmc_fetcher_bytes() long. One read
 * brings at most `read_bytes`, including the generation; if that is too little for a
 * chunk, nothing is read.
 */
void mmc_fetcher_init(struct mmc_fetcher *fetcher, uint8_t *memory,
		      uint32_t rank, const struct mmc_layout *layout,
		      uint32_t read_bytes);

/* Allows reads: data may flow now. A round trip takes `srtt_ns`. */
void mmc_fetcher_begin(struct mmc_fetcher *fetcher, uint64_t srtt_ns);

/* Takes the left neighbour's advert; a later advert may only add to an earlier one. */
void mmc_fetcher_learn(struct mmc_fetcher *fetcher,
		       const struct mmc_advert *advert, uint64_t now_ns);

/* Fetches the chunks of `run` that are not in `claimed`. */
void mmc_fetcher_want(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, struct mmc_run run,
		      uint64_t now_ns);

/* Looks again at once for chunks that the left neighbour lacked: it has all now. */
void mmc_fetcher_hurry(struct mmc_fetcher *fetcher, uint64_t now_ns);

/* Returns whether to read words of the neighbour's bitmap; if so, writes which. */
bool mmc_fetcher_map(struct mmc_fetcher *fetcher,
		     const struct mmc_bitmap *claimed, uint64_t now_ns,
		     struct mmc_run *words);

/*
 * Takes the end of a read of `words`: `bytes` holds the words, then the generation, as
 * they lie in the neighbour's memory; NULL if the read has failed. Returns whether the
 * read was of use.
 */
bool mmc_fetcher_mapped(struct mmc_fetcher *fetcher, struct mmc_run words,
			const uint8_t *bytes, uint64_t now_ns);

/* Returns whether to read chunks from the neighbour; if so, writes which. */
bool mmc_fetcher_data(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, struct mmc_run *run);

/*
 * Takes the end of a read of `run`: `generation` is the value read last, 0 if the read
 * has failed. Returns whether the chunks are the operation's.
 */
bool mmc_fetcher_over(struct mmc_fetcher *fetcher, struct mmc_run run,
		      uint64_t generation);

/*
 * Returns whether to ask the neighbour by message. If so, writes up to MMC_RUNS_MAX
 * runs, and to `*direct` whether to ask for the chunks themselves, not for its advert.
 */
bool mmc_fetcher_ask(struct mmc_fetcher *fetcher,
		     const struct mmc_bitmap *claimed, uint64_t now_ns,
		     struct mmc_run *runs, uint32_t *nruns, bool *direct);

/*
 * Returns whether to ask an owner for chunks that have been wanted for long. If so,
 * writes its rank and up to MMC_RUNS_MAX runs of its block, and to `*direct` whether to
 * ask by a direct NAK: owners were asked after the last lease too, or the owner is the
 * left neighbour.
 */
bool mmc_fetcher_lease(struct mmc_fetcher *fetcher,
		       const struct mmc_bitmap *claimed, uint64_t now_ns,
		       uint32_t *owner, struct mmc_run *runs, uint32_t *nruns,
		       bool *direct);

/*
 * Returns when to call mmc_fetcher_map(), mmc_fetcher_data(), mmc_fetcher_ask() and
 * mmc_fetcher_lease() again.
 */
uint64_t mmc_fetcher_deadline(const struct mmc_fetcher *fetcher);

#endif
