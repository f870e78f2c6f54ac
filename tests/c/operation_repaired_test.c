/* SPDX-License-Identifier: BSD-3-Clause */
/* A chunk that comes otherwise than in its turn is lost no more. */
#include "core/operation/repaired.h"

#include "subject.h"

/* Accounts for a chunk of rank 2, and returns how many repaired ones were counted. */
static uint64_t note(struct subject *subject, uint32_t place)
{
	struct mmc_op *op = subject->op;
	const struct mmc_block block = mmc_layout_block(&op->layout, 2);

	mmc_bitmap_test_and_set(&op->claimed, block.first + place);
	mmc_op_note_repaired(op, &block, block.first + place, subject->now_ns);
	return subject->counters.value[MMC_COUNT_RX_REPAIRED_CHUNKS];
}

static void counts_what_was_lost(void)
{
	struct subject subject;
	uint32_t first;

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	first = mmc_layout_block(&subject.op->layout, 2).first;
	CHECK_EQ(note(&subject, 0), 0);
	mmc_bitmap_test_and_set(&subject.op->repair.loss.lost, first + 1);
	CHECK_EQ(note(&subject, 1), 1);
	CHECK_EQ(note(&subject, 2), 1);
	subject_close(&subject);
}

CHECK_MAIN(CHECK_TEST(counts_what_was_lost))
