/* SPDX-License-Identifier: BSD-3-Clause */
/* Parity arrives before this rank has heard that all ranks have entered. */
#include "core/operation/parity.h"

#include "coded_subject.h"

static void open(struct subject *subject)
{
	const struct mmc_op_config config = config_of(K, M);

	subject_open(subject, &config);
	CHECK_EQ(subject->op->state, MMC_OP_ENTRY);
}

/* Delivers the far rank's chunks from number `place` of its block on. */
static void deliver_from(struct subject *subject, uint32_t place)
{
	for (uint32_t i = place; i < BLOCK_CHUNKS; i++)
		CHECK_EQ(subject_deliver(subject, FAR * BLOCK_CHUNKS + i),
			 MMC_VERDICT_PLACE);
}

/* A chunk that was lost before the flow began here is mended when the flow begins. */
static void early_parity_mends(void)
{
	static struct subject subject;
	const struct mmc_action *action;

	open(&subject);
	deliver_from(&subject, 1);
	CHECK(hear_parity(&subject, 0, 0) >= 0);
	CHECK(hear_parity(&subject, 1, 0) >= 0);
	CHECK(hear_parity(&subject, 2, 0) >= 0);
	subject_run(&subject);
	CHECK(subject_find_done(&subject, MMC_ACTION_MEND) == NULL);
	subject_begin(&subject);
	action = find_mend(&subject, 0);
	if (action == NULL)
		return;
	mmc_op_on_mended(subject.op, action);
	CHECK(mmc_bitmap_test(&subject.op->present, FAR * BLOCK_CHUNKS));
	CHECK_EQ(subject.op->mender->nheld, 0);
	CHECK_EQ(subject.counters.value[MMC_COUNT_RX_LOST_CHUNKS], 0);
	subject_close(&subject);
}

/* Early parity shows that a span was sent, even if all chunks of the span were lost. */
static void early_parity_tells_of_its_span(void)
{
	static struct subject subject;

	open(&subject);
	CHECK(hear_parity(&subject, 0, 0) >= 0);
	subject_begin(&subject);
	CHECK_EQ(mmc_loss_follow(&subject.op->repair.loss, &subject.op->claimed,
				 &(const struct mmc_block){
					 .number = FAR,
					 .first = FAR * BLOCK_CHUNKS,
					 .nchunks = BLOCK_CHUNKS,
				 },
				 subject.now_ns)
			 ->end,
		 BLOCK_CHUNKS);
	subject_close(&subject);
}

/*
 * Parity with the number of no group, or of no row, is dropped at once. Parity of the wrong
 * length is dropped when the flow begins.
 */
static void early_parity_may_be_foreign(void)
{
	static struct subject subject;

	open(&subject);
	deliver_from(&subject, 1);
	CHECK_EQ(hear_parity(&subject, 3, 0), MMC_UNKEPT_FOREIGN);
	CHECK_EQ(hear_parity(&subject, 0, 255 - K), MMC_UNKEPT_FOREIGN);
	CHECK(mmc_op_on_parity(subject.op, FAR, MMC_INDEX_PARITY, 99,
			       subject.now_ns) >= 0);
	subject_begin(&subject);
	CHECK(subject_find_done(&subject, MMC_ACTION_MEND) == NULL);
	CHECK_EQ(subject.op->mender->nheld, 0);
	subject_close(&subject);
}

CHECK_MAIN(CHECK_TEST(early_parity_mends),
	   CHECK_TEST(early_parity_tells_of_its_span),
	   CHECK_TEST(early_parity_may_be_foreign))
