/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads lost chunks from the left neighbour's memory: first the words of its bitmap
 * that stand for the wanted chunks, then those chunks that the bitmap shows as present.
 * The neighbour may itself have to read a chunk from its own neighbour, and so on, but
 * going left around the ring one always comes to the chunk's owner, which has it from
 * the start.
 *
 * Nothing is read before the neighbour's advert says that its data is registered. The
 * neighbour registers its data when it is asked to. If its memory cannot be read, or a
 * read fails, it is asked for the chunks by message instead. The owners of chunks that
 * have been wanted for long are asked as well.
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

/* The most reads of an operation that are under way at a time. */
#define MMC_READS_MAX 16

/* The most words of a bitmap that one read brings. */
#define MMC_READ_WORDS_MAX 512

/* Whether the left neighbour's memory can be read. */
enum mmc_fetch_access {
	MMC_ACCESS_AWAITED,  /* not before an advert says where its data is */
	MMC_ACCESS_READABLE, /* its bitmap and its data can be */
	MMC_ACCESS_REFUSED,  /* never; it is asked for chunks by message */
};

enum mmc_fetch_access_event {
	MMC_ACCESS_REGISTERED, /* an advert says where its data is */
	MMC_ACCESS_FAILED,     /* a read has failed, or none is possible */
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
	uint32_t nreading; /* reads under way, of words and of chunks */
	bool left_done;	   /* the neighbour is known to have all chunks */
	struct mmc_look look;
	struct mmc_backoff asking; /* when to ask for the data's advert */
	struct mmc_lease lease;
	uint64_t srtt_ns; /* the smoothed round trip */
};

/* Returns the bytes of memory that a fetcher of `nchunks` chunks takes. */
size_t mmc_fetcher_bytes(uint32_t nchunks);

/*
 * Initializes the fetcher of `rank` in `memory`, mmc_fetcher_bytes() long. One read
 * brings at most `read_bytes`, including the generation; if that is too little for a
 * chunk, nothing is ever read.
 */
void mmc_fetcher_init(struct mmc_fetcher *fetcher, uint8_t *memory,
		      uint32_t rank, const struct mmc_layout *layout,
		      uint32_t read_bytes);

/* Begins the flow, in which a round trip takes `srtt_ns`. */
void mmc_fetcher_begin(struct mmc_fetcher *fetcher, uint64_t srtt_ns);

/*
 * Takes an advert of the left neighbour. One of generation 0 ends all reading; of
 * others, a later one may only add the data to an earlier one.
 */
void mmc_fetcher_learn(struct mmc_fetcher *fetcher,
		       const struct mmc_advert *advert, uint64_t now_ns);

/* Records that the chunks of `run` that are not in `claimed` are wanted. */
void mmc_fetcher_want(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, struct mmc_run run,
		      uint64_t now_ns);

/*
 * Records that the left neighbour has all chunks. The first time, its bitmap is looked
 * at again at once for the chunks that it lacked.
 */
void mmc_fetcher_hurry(struct mmc_fetcher *fetcher, uint64_t now_ns);

/* What is to be done next to get chunks. */
enum mmc_fetch_step_kind {
	MMC_FETCH_NAK,	/* send `nak` */
	MMC_FETCH_DATA, /* read the chunks of `run`, and last the generation */
	MMC_FETCH_MAP,	/* read the words of `run`, and last the generation */
};

struct mmc_fetch_step {
	enum mmc_fetch_step_kind kind;
	struct mmc_run run;
	struct mmc_nak nak;
};

/*
 * Returns whether something is to be done now. If so, writes what to `step`. To be
 * called until it returns false; it calls the four functions that are marked as steps
 * below.
 */
bool mmc_fetcher_next(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, uint64_t now_ns,
		      struct mmc_fetch_step *step);

/*
 * A step: returns whether to read words of the neighbour's bitmap now. If so, writes
 * which to `words`; the read counts as under way.
 */
bool mmc_fetcher_map(struct mmc_fetcher *fetcher,
		     const struct mmc_bitmap *claimed, uint64_t now_ns,
		     struct mmc_run *words);

/*
 * Records that the read of `words` has ended. `bytes` holds the words, then the
 * generation, as they lie in the neighbour's memory; NULL if the read has failed.
 * Returns false if the read has failed, or has not brought this operation's bitmap.
 */
bool mmc_fetcher_mapped(struct mmc_fetcher *fetcher, struct mmc_run words,
			const uint8_t *bytes, uint64_t now_ns);

/*
 * A step: returns whether to read chunks from the neighbour now. If so, writes which to
 * `run`; the read counts as under way.
 */
bool mmc_fetcher_data(struct mmc_fetcher *fetcher,
		      const struct mmc_bitmap *claimed, struct mmc_run *run);

/*
 * Records that the read of the chunks of `run` has ended. `generation` is the one that
 * was read last, or 0 if the read has failed. Returns whether the chunks are this
 * operation's.
 */
bool mmc_fetcher_read_ended(struct mmc_fetcher *fetcher, struct mmc_run run,
			    uint64_t generation);

/*
 * A step: returns whether to ask the neighbour by message now. If so, writes the NAK.
 * It is direct if it asks for the chunks themselves; otherwise it asks for an advert of
 * the data.
 */
bool mmc_fetcher_ask(struct mmc_fetcher *fetcher,
		     const struct mmc_bitmap *claimed, uint64_t now_ns,
		     struct mmc_nak *nak);

/*
 * A step: returns whether to ask an owner now for chunks that have been wanted for long
 * (lease.h). If so, writes the NAK.
 */
bool mmc_fetcher_ask_owner(struct mmc_fetcher *fetcher,
			   const struct mmc_bitmap *claimed, uint64_t now_ns,
			   struct mmc_nak *nak);

/* Returns when to call mmc_fetcher_next() again although nothing arrives. */
uint64_t mmc_fetcher_deadline(const struct mmc_fetcher *fetcher);

#endif
