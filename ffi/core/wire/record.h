/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's record: all that others need to know of its state in one epoch. It only
 * grows, and every control message but a report carries all of it. So a lost message is
 * made good by the next, and an old one changes nothing.
 */
#ifndef MMC_CORE_WIRE_RECORD_H
#define MMC_CORE_WIRE_RECORD_H

#include "core/types.h"

/*
 * The values on which the entry barrier makes all ranks agree: the least (MIN) or the
 * greatest (MAX) of what each rank says. Merging terms twice, or in another order,
 * makes no difference.
 */
struct mmc_terms {
	/*
	 * MIN and MAX of what tells an operation's kind and sizes: equal if all ranks
	 * have started the same.
	 */
	uint64_t signature_min;
	uint64_t signature_max;
	uint32_t window_bytes; /* MIN: bytes that every receiver can buffer */
	/* MIN: bytes of one sender that every receiver can buffer. */
	uint32_t source_bytes;
	uint32_t srtt_us;    /* MAX: the smoothed round trip */
	uint32_t lag_epochs; /* MAX: epochs back to the last one that is done */
	/*
	 * MAX: 0, or which rank does not get what which sender multicasts (see
	 * mmc_terms_deaf()). Then nothing is multicast in this epoch.
	 */
	uint64_t deaf;
#ifndef MMC_BARE
	uint32_t parity; /* MAX: what is wanted of the code, see below */
#endif
};

/*
 * The term `parity` is 0 if a rank is content with repairs, or one more than the parity
 * chunks that it wants with each group. With MMC_PARITY_DECIDED the user has decided so
 * for this operation, whatever other ranks want. It has 8 bits. An adapter's processor
 * does not know it: beside an adapter no rank wants a code.
 */
#define MMC_PARITY_DECIDED 0x80

#ifdef MMC_BARE
static inline uint32_t mmc_terms_wanted(const struct mmc_terms *terms)
{
	(void)terms;
	return 0;
}

static inline void mmc_terms_want(struct mmc_terms *terms, uint32_t parity)
{
	(void)terms;
	(void)parity;
}
#else
/* Returns the term `parity`. */
static inline uint32_t mmc_terms_wanted(const struct mmc_terms *terms)
{
	return terms->parity;
}

/* Sets the term `parity` to the greater of itself and `parity`. */
static inline void mmc_terms_want(struct mmc_terms *terms, uint32_t parity)
{
	if (parity > terms->parity)
		terms->parity = parity;
}
#endif

/* Returns whether an operation with merged terms has a code. */
static inline bool mmc_terms_code(const struct mmc_terms *terms)
{
	return (mmc_terms_wanted(terms) & (MMC_PARITY_DECIDED - 1)) > 0;
}

/* Returns how many parity chunks go with each group, if it has a code. */
static inline uint32_t mmc_terms_parity(const struct mmc_terms *terms)
{
	return (mmc_terms_wanted(terms) & (MMC_PARITY_DECIDED - 1)) - 1;
}

/*
 * Returns the term `deaf` that says that `rank` gets no multicast of `sender`, or of
 * any sender if that is MMC_PEER_ALL.
 */
static inline uint64_t mmc_terms_deaf(uint32_t rank, uint32_t sender)
{
	return ((uint64_t)rank + 1) << 32 | sender;
}

/* Return the rank and the sender of a `deaf` that is not 0. */
static inline uint32_t mmc_deaf_rank(uint64_t deaf)
{
	return (uint32_t)(deaf >> 32) - 1;
}

static inline uint32_t mmc_deaf_sender(uint64_t deaf)
{
	return (uint32_t)deaf;
}

enum mmc_record_flag {
	MMC_RECORD_ENTERED = 1,
	MMC_RECORD_DONE = 2,   /* every chunk present, nothing in flight here */
	MMC_RECORD_CLOSED = 4, /* serves no rank any more */
	MMC_RECORD_FAILED = 8, /* `failure` and `culprit` say why */
	MMC_RECORD_LEFT = 16,  /* will never enter; set alone */
};

struct mmc_record {
	uint8_t flags;
	/* Rounds of the entry barrier heard, from round 0 on. */
	uint8_t entry_rounds;
	/* Rounds of the release barrier heard, from round 0 on. */
	uint8_t release_rounds;
	/* Enum mmc_error; 0 unless MMC_RECORD_FAILED is set. */
	uint8_t failure;
	/*
	 * The rank that is to blame for the failure. As long as nothing has failed, a
	 * rank that has not entered and for which this one waits. MMC_PEER_NONE: none in
	 * particular.
	 */
	uint32_t culprit;
	/* How many chunks of its own block the rank has multicast. */
	uint32_t sent_chunks;
	struct mmc_terms terms;
};

/* Merges `other` into `terms`. */
void mmc_terms_merge(struct mmc_terms *terms, const struct mmc_terms *other);

/* Adds what is new in `other` to `record`; both are of the same rank and epoch. */
void mmc_record_merge(struct mmc_record *record,
		      const struct mmc_record *other);

#endif
