/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's record: all that others need to know of its state in one epoch. It
 * only grows, and control messages carry it whole (but for reports), so that a lost
 * message is made good by the next and an old one changes nothing.
 */
#ifndef MMC_CORE_WIRE_RECORD_H
#define MMC_CORE_WIRE_RECORD_H

#include "core/types.h"

/* The values that the barrier merges; merging is idempotent and commutative. */
struct mmc_terms {
	uint64_t signature_min; /* of kind and bytes: equal if all agree */
	uint64_t signature_max;
	uint32_t window_bytes; /* MIN: what every receiver can buffer */
	uint32_t source_bytes; /* MIN: what it can of a single sender */
	uint32_t srtt_us;      /* MAX */
	uint32_t lag_epochs; /* MAX: how far behind the oldest unfinished is */
	/*
	 * MAX: 0, or a rank that does not get what another one multicasts, so
	 * that nothing is multicast in this epoch: see mmc_terms_deaf().
	 */
	uint64_t deaf;
};

/* Says in `mmc_terms.deaf` that `rank` gets no multicast of `sender`. */
static inline uint64_t mmc_terms_deaf(uint32_t rank, uint32_t sender)
{
	return ((uint64_t)rank + 1) << 32 | sender;
}

/* The two of a `deaf` that is not 0. */
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
	MMC_RECORD_CLOSED = 4, /* serves nobody any more */
	MMC_RECORD_FAILED = 8, /* `failure` and `culprit` say why */
	MMC_RECORD_LEFT = 16,  /* will never enter; comes without the others */
};

struct mmc_record {
	uint8_t flags;
	uint8_t entry_rounds; /* rounds of the entry barrier heard, from round 0 on */
	uint8_t release_rounds; /* likewise of the release barrier */
	uint8_t failure;	/* enum mmc_error */
	/*
	 * The rank that failed. While nothing has, a rank that keeps this one
	 * waiting since it has not entered. MMC_PEER_ALL: none in particular.
	 */
	uint32_t culprit;
	uint32_t sent_chunks; /* of the own block, by multicast */
	struct mmc_terms terms;
};

/* Merges `other` into `terms`. */
void mmc_terms_merge(struct mmc_terms *terms, const struct mmc_terms *other);

/* Merges what is newer in `other` into `record`, both of one rank and epoch. */
void mmc_record_merge(struct mmc_record *record,
		      const struct mmc_record *other);

#endif
