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
#include "core/repair/lease.h"
#include "core/repair/look.h"
#include "core/repair/nak.h"
#include "core/repair/wants.h"
#include "core/wire/advert.h"
#include "support/timer.h"

/* Reads of an operation under way at a time. */
#define MMC_READS_MAX 16

/* Words of a bitmap that one read brings at most. */
#define MMC_READ_WORDS_MAX 512

/* Whether the left neighbour's memory can be read. */
enum mmc_fetch_access {
	MMC_ACCESS_AWAITED,  /* its advert, or its data's registration, is */
	MMC_ACCESS_READABLE, /* its bitmap and its data */
	MMC_ACCESS_REFUSED,  /* chunks are asked for by message */
};

enum mmc_fetch_access_event {
	MMC_ACCESS_REGISTERED, /* an advert says that its data is */
	MMC_ACCESS_FAILED,     /* a read has, or it cannot be read at all */
};

/* X(state, event, next state) */
#define MMC_ACCESS_TABLE(X)                                                    \
	X(AWAITED, REGISTERED, READABLE)                                       \
	X(AWAITED, FAILED, REFUSED)                                            \
	X(READABLE, FAILED, REFUSED)

struct mmc_fetcher {
	struct mmc_layout layout;
	uint32_t rank;
	enum mmc_fetch_access access;
	struct mmc_advert advert; /* the left neighbour's; generation 0: none */
	uint32_t words_max;	  /* the most words in one read of the bitmap */
	uint32_t chunks_max;	  /* the most chunks in one read of the data */
	struct mmc_wants wants;
	uint32_t nreading; /* reads under way */
	bool left_done;	   /* the neighbour is known to have all chunks */
	struct mmc_look look;
	struct mmc_backoff asking; /* requests for the advert */
	struct mmc_lease lease;
	uint64_t srtt_ns;
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

/*
 * Records that the left neighbour has all chunks: those that it lacked are looked for
 * again at once, the first time that this is heard.
 */
void mmc_fetcher_hurry(struct mmc_fetcher *fetcher, uint64_t now_ns);

/* What is to be done next to get chunks. */
enum mmc_fetch_step_kind {
	MMC_FETCH_NAK,	/* send `nak` */
	MMC_FETCH_DATA, /* read the chunks of `run`, then the generation */
	MMC_FETCH_MAP,	/* read the words of `run`, then the generation */
};

struct mmc_fetch_step {
	enum mmc_fetch_step_kind kind;
	struct mmc_run run;
	struct mmc_nak nak;
};

/*
 * Returns whether something is to be done now; if so, writes what. Call until it
 * returns false.
 */
bool mmc_fetcher_next(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, uint64_t now_ns,
		      struct mmc_fetch_step *step);

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
 * Returns whether to ask the neighbour by message. If so, writes the NAK, which is
 * direct if it asks for the chunks themselves, and not for the neighbour's advert.
 */
bool mmc_fetcher_ask(struct mmc_fetcher *fetcher,
		     const struct mmc_bitmap *claimed, uint64_t now_ns,
		     struct mmc_nak *nak);

/*
 * Returns whether to ask an owner for chunks that have been wanted for long (lease.h).
 * If so, writes the NAK.
 */
bool mmc_fetcher_ask_owner(struct mmc_fetcher *fetcher,
			   const struct mmc_bitmap *claimed, uint64_t now_ns,
			   struct mmc_nak *nak);

/* Returns when to call mmc_fetcher_next() again. */
uint64_t mmc_fetcher_deadline(const struct mmc_fetcher *fetcher);

#endif
