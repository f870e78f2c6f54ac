/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a fetcher looks at its neighbour's bitmap. One look reads all words that stand
 * for wanted chunks, by several reads. After a look that has found some, the next
 * follows one round trip later. After one in vain it follows two round trips later, and
 * each further look in vain doubles that time.
 * MMC_LOOK_TABLE holds the states and the events that lead from one to the next.
 */
#ifndef MMC_CORE_REPAIR_LOOK_H
#define MMC_CORE_REPAIR_LOOK_H

#include "core/types.h"

enum mmc_look_state {
	MMC_LOOK_NONE,	/* no look is under way */
	MMC_LOOK_BEGUN, /* a look has begun, but no read yet */
	MMC_LOOK_VAIN,	/* reads have begun, but showed no wanted chunk yet */
	MMC_LOOK_FOUND, /* reads have shown wanted chunks */
};

enum mmc_look_event {
	MMC_LOOK_BEGIN,	  /* a look begins */
	MMC_LOOK_READ,	  /* a read of words begins */
	MMC_LOOK_PRESENT, /* words that were read show wanted chunks */
	MMC_LOOK_END,	  /* all words have been read, or cannot be */
};

/* X(state, event, next state) */
#define MMC_LOOK_TABLE(X)                                                      \
	X(NONE, BEGIN, BEGUN)                                                  \
	X(NONE, END, NONE)                                                     \
	X(BEGUN, READ, VAIN)                                                   \
	X(BEGUN, END, NONE)                                                    \
	X(VAIN, READ, VAIN)                                                    \
	X(VAIN, PRESENT, FOUND)                                                \
	X(VAIN, END, NONE)                                                     \
	X(FOUND, READ, FOUND)                                                  \
	X(FOUND, PRESENT, FOUND)                                               \
	X(FOUND, END, NONE)

struct mmc_look {
	enum mmc_look_state state;
	bool again;	    /* the next look is to follow this one at once */
	uint32_t next_word; /* the first word not read; nwords: none is left */
	uint32_t nwords;    /* the words of the bitmap */
	uint32_t nreading;  /* reads of words under way */
	uint64_t at_ns;	    /* when to look next; MMC_NEVER_NS during a look */
	uint64_t interval_ns; /* the time from the last look to the next */
	uint64_t srtt_ns;     /* the smoothed round trip */
};

/* Initializes looks at a bitmap of `nwords` words; none is due yet. */
void mmc_look_init(struct mmc_look *look, uint32_t nwords);

/* Lets a look begin at once or, if one is under way, as soon as that ends. */
void mmc_look_soon(struct mmc_look *look, uint64_t now_ns);

/*
 * Begins a look if one is due. Returns whether one is under way that has words left to
 * read, from `next_word` on.
 */
bool mmc_look_goes_on(struct mmc_look *look, uint64_t now_ns);

/* Records that a read of the words from `next_word` up to `end_word` has begun. */
void mmc_look_read(struct mmc_look *look, uint32_t end_word);

/* Records that words that were read show wanted chunks. */
void mmc_look_found(struct mmc_look *look);

/* If all words of the look have been read, ends it and sets when to look next. */
void mmc_look_end(struct mmc_look *look, uint64_t now_ns);

/* Ends the look under way, and lets no other begin: nothing can be read any more. */
void mmc_look_stop(struct mmc_look *look);

#endif
