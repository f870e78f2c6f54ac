/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's record: all that others need to know of its state in one epoch. It
 * only grows, and every control message carries it whole, so that a lost
 * message is made good by the next and an old one changes nothing.
 */
#ifndef MMC_CORE_RECORD_H
#define MMC_CORE_RECORD_H

#include "core/types.h"

/* The values that the gate merges; merging is idempotent and commutative. */
struct mmc_terms {
	uint64_t signature_min; /* of kind and bytes: equal if all agree */
	uint64_t signature_max;
	uint32_t window_bytes; /* MIN: what every receiver can buffer */
	uint32_t source_bytes; /* MIN: what it can of a single sender */
	uint32_t srtt_us;      /* MAX */
	uint32_t lag_epochs; /* MAX: how far behind the oldest unfinished is */
	uint32_t flags;	     /* OR, of enum mmc_terms_flag */
};

enum mmc_terms_flag {
	/* Somebody does not get what is multicast: nothing is, in this epoch. */
	MMC_TERMS_UNICAST = 1,
};

enum mmc_record_flag {
	MMC_RECORD_ENTERED = 1,
	MMC_RECORD_DONE = 2,   /* every chunk present, nothing in flight here */
	MMC_RECORD_CLOSED = 4, /* serves nobody any more */
	MMC_RECORD_FAILED = 8, /* `failure` and `culprit` say why */
};

struct mmc_record {
	uint8_t flags;
	uint8_t entry_rounds; /* rounds of the entry gate heard, from round 0 on */
	uint8_t release_rounds; /* likewise of the release gate */
	uint8_t failure;	/* enum mmc_error */
	uint32_t culprit; /* a rank, or MMC_PEER_ALL for none in particular */
	uint32_t sent_chunks; /* of the own block, by multicast */
	struct mmc_terms terms;
};

/* Merges `other` into `terms`. */
void mmc_terms_merge(struct mmc_terms *terms, const struct mmc_terms *other);

/* Merges what is newer in `other` into `record`, both of one rank and epoch. */
void mmc_record_merge(struct mmc_record *record,
		      const struct mmc_record *other);

#endif
