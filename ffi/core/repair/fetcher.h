/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lost chunks are read from the left neighbour's memory. First the words of its
 * bitmap that stand for what is wanted, then the chunks that are present there,
 * many at a time; what it lacks is looked for again after one round trip, then
 * ever more rarely down to once a millisecond. Along the ring each chunk's chain
 * of neighbours ends at its owner, who had it from the start.
 *
 * Nothing can be read before the neighbour's advert has come and says that its
 * data is registered: until then it is asked for that. Of a neighbour whose memory
 * cannot be read, or no longer, the chunks are asked for by message. A chunk that
 * has been wanted for long is asked of its owner as well.
 */
#ifndef MMC_CORE_REPAIR_FETCHER_H
#define MMC_CORE_REPAIR_FETCHER_H

#include "core/plan/bitmap.h"
#include "core/plan/layout.h"
#include "core/wire/advert.h"
#include "support/timer.h"

/* Reads of an operation under way at a time. */
#define MMC_READS_MAX 16

/* Words of a bitmap that one read brings. */
#define MMC_READ_WORDS_MAX 512

struct mmc_fetcher {
	struct mmc_layout layout;
	uint32_t rank;
	struct mmc_advert advert; /* the left neighbour's, if `known` */
	bool known;
	bool useless;		  /* nothing can be read: it is asked instead */
	uint32_t words_max;	  /* of one read of its bitmap */
	uint32_t chunks_max;	  /* of one read of its data */
	struct mmc_bitmap wanted; /* and not yet here, last we looked */
	struct mmc_bitmap due;	  /* of these: to be fetched from it now */
	struct mmc_bitmap reading; /* being read */
	struct mmc_bitmap overdue; /* wanted when the lease began, at latest */
	uint32_t due_from;	   /* no chunk below is due */
	uint32_t nreading;	   /* reads under way */
	uint32_t nmaps;		   /* of the bitmap */
	uint32_t sweep_word; /* where looking goes on; all words: it is over */
	bool fresh;	     /* more is wanted since this look began */
	bool looked;	     /* something was read for it */
	bool found;	     /* and was of use */
	uint64_t poll_ns;    /* when to look again */
	uint64_t interval_ns;
	uint64_t srtt_ns;
	struct mmc_backoff asking; /* for the advert */
	uint64_t lease_ns;	   /* when it is over and owners are asked */
	bool lease_over;	   /* they are being asked */
	uint32_t lease_chunk;	   /* from this one on */
	bool leased;		   /* after the last lease they were, too */
	bool leasing;		   /* after this one they were */
};

/* The memory for `nchunks` chunks, in bytes. */
size_t mmc_fetcher_bytes(uint32_t nchunks);

/*
 * Begins in `memory`, mmc_fetcher_bytes() long, for `rank`. One read brings at
 * most `read_bytes` with the generation: too few for a chunk, and nothing is
 * read.
 */
void mmc_fetcher_init(struct mmc_fetcher *fetcher, uint8_t *memory,
		      uint32_t rank, const struct mmc_layout *layout,
		      uint32_t read_bytes);

/* The bulk may flow; a round trip takes `srtt_ns`. */
void mmc_fetcher_begin(struct mmc_fetcher *fetcher, uint64_t srtt_ns);

/* The left neighbour's advert has come; later ones may only tell more. */
void mmc_fetcher_learn(struct mmc_fetcher *fetcher,
		       const struct mmc_advert *advert, uint64_t now_ns);

/* The chunks of `run` that are not in `claimed` are to be fetched. */
void mmc_fetcher_want(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, struct mmc_run run,
		      uint64_t now_ns);

/* The left neighbour has everything now: whatever it lacked may be looked for. */
void mmc_fetcher_hurry(struct mmc_fetcher *fetcher, uint64_t now_ns);

/* Whether words of the neighbour's bitmap are to be read; if so writes which. */
bool mmc_fetcher_map(struct mmc_fetcher *fetcher,
		     const struct mmc_bitmap *claimed, uint64_t now_ns,
		     struct mmc_run *words);

/*
 * They have come: `bytes` holds the words, then the generation, as they lie in
 * the neighbour's memory; NULL if the read has failed. Returns whether that was
 * of use.
 */
bool mmc_fetcher_mapped(struct mmc_fetcher *fetcher, struct mmc_run words,
			const uint8_t *bytes, uint64_t now_ns);

/* Whether chunks are to be read from the neighbour; if so writes which. */
bool mmc_fetcher_data(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, struct mmc_run *run);

/*
 * That read is over, and `generation` is what was read last, 0 if it has failed.
 * Returns whether the chunks are the operation's.
 */
bool mmc_fetcher_over(struct mmc_fetcher *fetcher, struct mmc_run run,
		      uint64_t generation);

/*
 * Whether the neighbour is to be asked by message. If so writes up to
 * MMC_RUNS_MAX runs, and to `*direct` whether for them, not for its advert.
 */
bool mmc_fetcher_ask(struct mmc_fetcher *fetcher,
		     const struct mmc_bitmap *claimed, uint64_t now_ns,
		     struct mmc_run *runs, uint32_t *nruns, bool *direct);

/*
 * Whether an owner is to be asked for what has been wanted for long. If so
 * writes whom and up to MMC_RUNS_MAX runs of its block, and to `*direct` whether
 * owners have been asked before.
 */
bool mmc_fetcher_lease(struct mmc_fetcher *fetcher,
		       const struct mmc_bitmap *claimed, uint64_t now_ns,
		       uint32_t *owner, struct mmc_run *runs, uint32_t *nruns,
		       bool *direct);

/* When the four questions are to be asked again. */
uint64_t mmc_fetcher_deadline(const struct mmc_fetcher *fetcher);

#endif
