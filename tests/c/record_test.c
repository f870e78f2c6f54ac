/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control is state: whichever records of a rank arrive, in whichever order and however
 * often, the receiver ends up with the newest of them.
 */
#include "check.h"
#include "core/types.h"
#include "core/wire/record.h"
#include "support/prng.h"

#define HISTORY_MAX 24

static struct mmc_terms random_terms(struct mmc_prng *prng)
{
	return (struct mmc_terms){
		.signature_min = mmc_prng_next(prng) % 4,
		.signature_max = mmc_prng_next(prng) % 4,
		.window_bytes = mmc_prng_next(prng) % 4,
		.source_bytes = mmc_prng_next(prng) % 4,
		.srtt_us = mmc_prng_next(prng) % 4,
		.lag_epochs = mmc_prng_next(prng) % 4,
		.parity = mmc_prng_next(prng) % 4,
		.deaf = mmc_prng_below(prng, 4),
	};
}

static bool equal_terms(const struct mmc_terms *a, const struct mmc_terms *b)
{
	return a->signature_min == b->signature_min &&
	       a->signature_max == b->signature_max &&
	       a->window_bytes == b->window_bytes &&
	       a->source_bytes == b->source_bytes && a->srtt_us == b->srtt_us &&
	       a->lag_epochs == b->lag_epochs && a->parity == b->parity &&
	       a->deaf == b->deaf;
}

static bool equal_records(const struct mmc_record *a,
			  const struct mmc_record *b)
{
	return a->flags == b->flags && a->entry_rounds == b->entry_rounds &&
	       a->release_rounds == b->release_rounds &&
	       a->failure == b->failure && a->culprit == b->culprit &&
	       a->sent_chunks == b->sent_chunks &&
	       equal_terms(&a->terms, &b->terms);
}

static struct mmc_terms merged_terms(struct mmc_terms a, struct mmc_terms b)
{
	mmc_terms_merge(&a, &b);
	return a;
}

/* Terms merge to the same result in any order and grouping, however often. */
static void terms_form_a_semilattice(void)
{
	struct mmc_prng prng = { .state = 12 };

	for (int i = 0; i < 20000; i++) {
		struct mmc_terms a = random_terms(&prng);
		struct mmc_terms b = random_terms(&prng);
		struct mmc_terms c = random_terms(&prng);
		struct mmc_terms ab = merged_terms(a, b);
		struct mmc_terms ba = merged_terms(b, a);
		struct mmc_terms aa = merged_terms(a, a);
		struct mmc_terms left = merged_terms(ab, c);
		struct mmc_terms right = merged_terms(a, merged_terms(b, c));

		CHECK(equal_terms(&ab, &ba));
		CHECK(equal_terms(&aa, &a));
		CHECK(equal_terms(&left, &right));
	}
}

/* Each field of the merged terms is the least or the greatest of both. */
static void terms_by_field(void)
{
	struct mmc_terms a = { 5, 5, 100, 60, 10, 0, 0, 3 };
	const struct mmc_terms b = { 3, 7, 200, 50, 5, 2, 1, 1 };

	mmc_terms_merge(&a, &b);
	CHECK_EQ(a.signature_min, 3);
	CHECK_EQ(a.signature_max, 7);
	CHECK_EQ(a.window_bytes, 100);
	CHECK_EQ(a.source_bytes, 50);
	CHECK_EQ(a.srtt_us, 10);
	CHECK_EQ(a.lag_epochs, 2);
	CHECK_EQ(a.parity, 3);
	CHECK_EQ(a.deaf, 1);
}

/* Who decides about a code overrules who wants one, and any parity more than repeating. */
static void parity_wanted_and_decided(void)
{
	const uint16_t repeat = MMC_PARITY_DECIDED;
	const uint16_t code = MMC_PARITY_DECIDED + 4 + 1;
	const struct {
		uint16_t one;
		uint16_t other;
		bool coded;
		uint32_t parity;
	} rows[] = {
		{ 0, 0, false, 0 },	 { 0, 1, true, 0 },
		{ 3, 0, true, 2 },	 { 3, 5, true, 4 },
		{ repeat, 5, false, 0 }, { 9, code, true, 4 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mmc_terms terms = { .parity = rows[i].one };

		mmc_terms_merge(&terms,
				&(struct mmc_terms){ .parity = rows[i].other });
		CHECK_EQ(mmc_terms_code(&terms), rows[i].coded);
		if (rows[i].coded)
			CHECK_EQ(mmc_terms_parity(&terms), rows[i].parity);
	}
}

/* Takes one step in the life of a rank's record, which only grows. */
static void grow(struct mmc_record *record, struct mmc_prng *prng)
{
	struct mmc_terms terms = random_terms(prng);

	switch (mmc_prng_below(prng, 6)) {
	case 0:
		if (record->entry_rounds < MMC_ROUNDS_MAX)
			record->entry_rounds++;
		break;
	case 1:
		record->sent_chunks += (uint32_t)mmc_prng_below(prng, 10);
		break;
	case 2:
		mmc_terms_merge(&record->terms, &terms);
		break;
	case 3:
		record->flags |= MMC_RECORD_DONE;
		break;
	case 4:
		if (record->flags & MMC_RECORD_DONE &&
		    record->release_rounds < MMC_ROUNDS_MAX)
			record->release_rounds++;
		break;
	default:
		if (record->flags & (MMC_RECORD_FAILED | MMC_RECORD_DONE))
			break;
		record->flags |= MMC_RECORD_FAILED;
		record->failure =
			(uint8_t)(1 + mmc_prng_below(prng, MMC_ERROR_MAX));
		record->culprit = (uint32_t)mmc_prng_below(prng, 8);
	}
}

/* Draws the successive records of a rank, from before it enters. */
static unsigned random_history(struct mmc_record *history,
			       struct mmc_prng *prng)
{
	unsigned length = 2 + (unsigned)mmc_prng_below(prng, HISTORY_MAX - 1);

	memset(history, 0, HISTORY_MAX * sizeof(*history));
	history[1].flags = MMC_RECORD_ENTERED;
	history[1].terms = random_terms(prng);
	for (unsigned i = 2; i < length; i++) {
		history[i] = history[i - 1];
		grow(&history[i], prng);
	}
	return length;
}

/* Merges random records up to `last`, some of them twice, and `last` itself. */
static struct mmc_record received(const struct mmc_record *history,
				  unsigned last, struct mmc_prng *prng)
{
	struct mmc_record record = { 0 };
	unsigned nmerges = (unsigned)mmc_prng_below(prng, 3 * HISTORY_MAX);
	unsigned when = (unsigned)mmc_prng_below(prng, nmerges + 1);

	for (unsigned i = 0; i <= nmerges; i++) {
		unsigned pick = (unsigned)mmc_prng_below(prng, last + 1);

		mmc_record_merge(&record, &history[i == when ? last : pick]);
	}
	return record;
}

static void any_order_loss_and_duplication(void)
{
	struct mmc_prng prng = { .state = 13 };
	struct mmc_record history[HISTORY_MAX];

	for (int i = 0; i < 20000; i++) {
		unsigned length = random_history(history, &prng);
		unsigned last = (unsigned)mmc_prng_below(&prng, length);
		struct mmc_record record = received(history, last, &prng);

		if (!CHECK(equal_records(&record, &history[last])))
			break;
	}
}

/* Merging an older record, or the same one again, changes nothing. */
static void old_records_are_no_ops(void)
{
	struct mmc_prng prng = { .state = 14 };
	struct mmc_record history[HISTORY_MAX];

	for (int i = 0; i < 2000; i++) {
		unsigned length = random_history(history, &prng);

		for (unsigned a = 0; a < length; a++)
			for (unsigned b = 0; b <= a; b++) {
				struct mmc_record record = history[a];

				mmc_record_merge(&record, &history[b]);
				CHECK(equal_records(&record, &history[a]));
			}
	}
}

static bool none_shrank(const struct mmc_record *before,
			const struct mmc_record *after)
{
	return (before->flags & ~after->flags) == 0 &&
	       before->entry_rounds <= after->entry_rounds &&
	       before->release_rounds <= after->release_rounds &&
	       before->sent_chunks <= after->sent_chunks &&
	       (!(before->flags & MMC_RECORD_FAILED) ||
		(before->failure == after->failure &&
		 before->culprit == after->culprit));
}

/* Even records that contradict each other never take anything back. */
static void never_shrinks(void)
{
	struct mmc_prng prng = { .state = 15 };
	struct mmc_record histories[2][HISTORY_MAX];

	for (int i = 0; i < 2000; i++) {
		struct mmc_record record = { 0 };
		unsigned lengths[2];

		for (unsigned h = 0; h < 2; h++)
			lengths[h] = random_history(histories[h], &prng);
		for (int step = 0; step < 50; step++) {
			struct mmc_record before = record;
			unsigned h = (unsigned)mmc_prng_below(&prng, 2);

			mmc_record_merge(&record, &histories[h][mmc_prng_below(
							  &prng, lengths[h])]);
			CHECK(none_shrank(&before, &record));
		}
	}
}

CHECK_MAIN(CHECK_TEST(terms_form_a_semilattice), CHECK_TEST(terms_by_field),
	   CHECK_TEST(parity_wanted_and_decided),
	   CHECK_TEST(any_order_loss_and_duplication),
	   CHECK_TEST(old_records_are_no_ops), CHECK_TEST(never_shrinks))
