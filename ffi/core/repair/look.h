/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a fetcher looks at its neighbour's bitmap: a look reads the words that stand for
 * wanted chunks, from the first to the last. What the neighbour lacks is looked for
 * again after one round trip, then ever more rarely.
 *
 * MMC_LOOK_TABLE holds the states and the events that lead from one to the next.
 */
#ifndef MMC_CORE_REPAIR_LOOK_H
#define MMC_CORE_REPAIR_LOOK_H

#include "core/types.h"

enum mmc_look_state {
	MMC_LOOK_NONE,	/* no look is under way */
	MMC_LOOK_BEGUN, /* nothing has been read yet */
	MMC_LOOK_VAIN,	/* words were read; no wanted chunk was present */
	MMC_LOOK_FOUND, /* wanted chunks were present */
};

enum mmc_look_event {
	MMC_LOOK_BEGIN,
	MMC_LOOK_READ,	  /* words are being read */
	MMC_LOOK_PRESENT, /* words show wanted chunks */
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
	bool again;	    /* another look is to follow this one at once */
	uint32_t next_word; /* where it goes on; `nwords`: all were read */
	uint32_t nwords;
	uint32_t nreading; /* reads of words under way */
	uint64_t at_ns;	   /* when to look again; MMC_NEVER_NS during a look */
	uint64_t interval_ns;
	uint64_t srtt_ns;
};

/* Initializes `look` at a bitmap of `nwords` words; no look is due. */
void mmc_look_init(struct mmc_look *look, uint32_t nwords);

/* Looks at once, or again as soon as the look under way ends. */
void mmc_look_soon(struct mmc_look *look, uint64_t now_ns);

/*
 * Returns whether words are left to read, from `next_word` on; begins the look that is
 * due for that.
 */
bool mmc_look_goes_on(struct mmc_look *look, uint64_t now_ns);

/* Records that the words from `next_word` up to `end_word` are being read. */
void mmc_look_read(struct mmc_look *look, uint32_t end_word);

/* Records that words which were read show wanted chunks. */
void mmc_look_found(struct mmc_look *look);

/* Ends the look if all its reads have ended, and says when to look again. */
void mmc_look_end(struct mmc_look *look, uint64_t now_ns);

/* Ends all looking: nothing can be read any more. */
void mmc_look_stop(struct mmc_look *look);

#endif
