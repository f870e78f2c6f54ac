/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of view.h show the engine an operation's present state. */
#include "core/operation/view.h"

#include "one_operation.h"

/* Each of the four ranks has a block of five chunks. The operation is rank 1's. */
#define OWN_FIRST 5
#define NCHUNKS 20

/* In a new operation only this rank's block is present, and nothing has failed. */
static void a_new_operation(void)
{
	struct one one;
	const struct mmc_block *own;

	one_open(&one, &one_config);
	CHECK_EQ(mmc_op_epoch(one.op), ONE_EPOCH);
	CHECK_EQ(mmc_op_layout(one.op)->nchunks, NCHUNKS);
	own = mmc_op_own_block(one.op);
	CHECK_EQ(own->first, OWN_FIRST);
	CHECK_EQ(own->nchunks, 5);
	CHECK_EQ(mmc_op_missing_chunks(one.op), NCHUNKS - 5);
	CHECK(!mmc_op_has_failed(one.op));
	CHECK_EQ(mmc_op_error(one.op), MMC_OK);
	CHECK_EQ(mmc_op_culprit(one.op), MMC_PEER_NONE);
	CHECK_EQ(mmc_op_terms(one.op)->signature_min, 7);
	one_close(&one);
}

/* Each new chunk lowers the number of missing chunks by one, a duplicate by none. */
static void missing_chunks(void)
{
	struct one one;
	uint32_t nmissing = NCHUNKS - 5;

	one_open(&one, &one_config);
	one_begin(&one);
	for (uint32_t c = 0; c < NCHUNKS; c++) {
		if (c / 5 == one_config.rank)
			continue;
		CHECK_EQ(one_bring(&one, c), MMC_VERDICT_PLACE);
		CHECK_EQ(mmc_op_missing_chunks(one.op), --nmissing);
		one_bring(&one, c);
		CHECK_EQ(mmc_op_missing_chunks(one.op), nmissing);
	}
	CHECK_EQ(nmissing, 0);
	one_close(&one);
}

/*
 * The header of a chunk says to which operation the chunk belongs, which chunk it is,
 * and whether it is a repair.
 */
static void headers(void)
{
	struct one one;

	one_open(&one, &one_config);
	for (uint32_t c = 0; c < NCHUNKS; c++)
		for (int repair = 0; repair < 2; repair++) {
			struct mmc_header header =
				mmc_op_header(one.op, c, repair);

			CHECK_EQ(header.channel, ONE_CHANNEL);
			CHECK_EQ(header.epoch, ONE_EPOCH);
			CHECK_EQ(header.index & MMC_INDEX_MASK, c);
			CHECK_EQ((header.index & MMC_INDEX_REPAIR) != 0,
				 repair);
			CHECK_EQ(header.index & MMC_INDEX_CONTROL, 0);
		}
	one_close(&one);
}

/* When another rank announces a failure, the view shows its error and its culprit. */
static void a_failure(void)
{
	struct mmc_message message = one_message(MMC_MESSAGE_RECORD);
	struct one one;

	message.record.flags |= MMC_RECORD_FAILED;
	message.record.failure = MMC_ENOANSWER;
	message.record.culprit = 2;
	one_open(&one, &one_config);
	one_hear(&one, 3, &message);
	CHECK(mmc_op_has_failed(one.op));
	CHECK_EQ(mmc_op_error(one.op), MMC_ENOANSWER);
	CHECK_EQ(mmc_op_culprit(one.op), 2);
	one_close(&one);
}

/* The terms of a rank that was heard are merged into those of the operation. */
static void merged_terms(void)
{
	struct mmc_message message = one_message(MMC_MESSAGE_RECORD);
	struct one one;

	message.record.terms.window_bytes = 1234;
	one_open(&one, &one_config);
	CHECK_EQ(mmc_op_terms(one.op)->window_bytes, 60000);
	one_hear(&one, 0, &message);
	CHECK_EQ(mmc_op_terms(one.op)->window_bytes, 1234);
	one_close(&one);
}

CHECK_MAIN(CHECK_TEST(a_new_operation), CHECK_TEST(missing_chunks),
	   CHECK_TEST(headers), CHECK_TEST(a_failure), CHECK_TEST(merged_terms))
