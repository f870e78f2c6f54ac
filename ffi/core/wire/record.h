/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's record: all that others need to know of its state in one epoch. It only
 * grows, and control messages carry it whole (except for reports), so that a lost
 * message is made good by the next and an old one changes nothing.
 */
#ifndef MMC_CORE_WIRE_RECORD_H
#define MMC_CORE_WIRE_RECORD_H

#include "core/types.h"

/* The values that the barrier merges; merging is idempotent and commutative. */
struct mmc_terms {
	/*
	 * MIN: the signature of kind and bytes, equal to `signature_max` if all ranks
	 * agree.
	 */
	uint64_t signature_min;
	uint64_t signature_max;
	uint32_t window_bytes; /* MIN: bytes that every receiver can buffer */
	/* MIN: bytes of one sender that every receiver can buffer. */
	uint32_t source_bytes;
	uint32_t srtt_us;    /* MAX: round trip */
	uint32_t lag_epochs; /* MAX: epochs back to the last one that is done */
	/*
	 * MAX: 0, or a rank that does not get what another one multicasts, so that
	 * nothing is multicast in this epoch: see mmc_terms_deaf().
	 */
	uint64_t deaf;
};

/* Returns the `mmc_terms.deaf` of a `rank` that gets no multicast of `sender`. */
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
	uint8_t failure; /* enum mmc_error */
	/*
	 * The rank that failed. Before any failure, a rank that keeps the record's rank
	 * waiting since it has not entered. MMC_PEER_ALL: none in particular.
	 */
	uint32_t culprit;
	/* The chunks of the rank's own block that it has multicast. */
	uint32_t sent_chunks;
	struct mmc_terms terms;
};

/* Merges `other` into `terms`. */
void mmc_terms_merge(struct mmc_terms *terms, const struct mmc_terms *other);

/* Merges the newer parts of `other` into `record`, both of one rank and epoch. */
void mmc_record_merge(struct mmc_record *record,
		      const struct mmc_record *other);

#endif
