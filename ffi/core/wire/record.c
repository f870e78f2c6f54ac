/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/wire/record.h"

#include "support/bits.h"

void mmc_terms_merge(struct mmc_terms *terms, const struct mmc_terms *other)
{
	terms->signature_min =
		mmc_min_u64(terms->signature_min, other->signature_min);
	terms->signature_max =
		mmc_max_u64(terms->signature_max, other->signature_max);
	terms->window_bytes =
		mmc_min_u32(terms->window_bytes, other->window_bytes);
	terms->source_bytes =
		mmc_min_u32(terms->source_bytes, other->source_bytes);
	terms->srtt_us = mmc_max_u32(terms->srtt_us, other->srtt_us);
	terms->lag_epochs = mmc_max_u32(terms->lag_epochs, other->lag_epochs);
	mmc_terms_want(terms, mmc_terms_wanted(other));
	terms->deaf = mmc_max_u64(terms->deaf, other->deaf);
}

void mmc_record_merge(struct mmc_record *record, const struct mmc_record *other)
{
	bool first_failure = !(record->flags & MMC_RECORD_FAILED) &&
			     (other->flags & MMC_RECORD_FAILED);

	if (first_failure) {
		record->failure = other->failure;
		record->culprit = other->culprit;
	}
	/* A rank that has not entered has no terms yet. */
	if (!(record->flags & MMC_RECORD_ENTERED))
		record->terms = other->terms;
	else if (other->flags & MMC_RECORD_ENTERED)
		mmc_terms_merge(&record->terms, &other->terms);
	record->flags |= other->flags;
	record->entry_rounds =
		(uint8_t)mmc_max_u32(record->entry_rounds, other->entry_rounds);
	record->release_rounds = (uint8_t)mmc_max_u32(record->release_rounds,
						      other->release_rounds);
	record->sent_chunks =
		mmc_max_u32(record->sent_chunks, other->sent_chunks);
}
