/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of view.h report the current state of an operation. */
#include "core/operation/view.h"

#include "subject.h"

/* Each of the four ranks has a block of five chunks. The operation is rank 1's. */
#define OWN_FIRST 5
#define NCHUNKS 20

/* In a new operation only this rank's block is present, and nothing has failed. */
static void a_new_operation(void)
{
	struct subject subject;
	const struct mmc_block *own;

	subject_open(&subject, &subject_config);
	CHECK_EQ(mmc_op_epoch(subject.op), SUBJECT_EPOCH);
	CHECK_EQ(mmc_op_layout(subject.op)->nchunks, NCHUNKS);
	own = mmc_op_own_block(subject.op);
	CHECK_EQ(own->first, OWN_FIRST);
	CHECK_EQ(own->nchunks, 5);
	CHECK_EQ(mmc_op_missing_chunks(subject.op), NCHUNKS - 5);
	CHECK(!mmc_op_has_failed(subject.op));
	CHECK_EQ(mmc_op_error(subject.op), MMC_OK);
	CHECK_EQ(mmc_op_culprit(subject.op), MMC_PEER_NONE);
	CHECK_EQ(mmc_op_terms(subject.op)->signature_min, 7);
	subject_close(&subject);
}

/* Each new chunk lowers the number of missing chunks by one; a duplicate does not. */
static void missing_chunks(void)
{
	struct subject subject;
	uint32_t nmissing = NCHUNKS - 5;

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	for (uint32_t c = 0; c < NCHUNKS; c++) {
		if (c / 5 == subject_config.rank)
			continue;
		CHECK_EQ(subject_bring(&subject, c), MMC_VERDICT_PLACE);
		CHECK_EQ(mmc_op_missing_chunks(subject.op), --nmissing);
		subject_bring(&subject, c);
		CHECK_EQ(mmc_op_missing_chunks(subject.op), nmissing);
	}
	CHECK_EQ(nmissing, 0);
	subject_close(&subject);
}

/*
 * The header of a chunk says to which operation the chunk belongs, which chunk it is,
 * and whether it is a repair.
 */
static void headers(void)
{
	struct subject subject;

	subject_open(&subject, &subject_config);
	for (uint32_t c = 0; c < NCHUNKS; c++)
		for (int repair = 0; repair < 2; repair++) {
			struct mmc_header header =
				mmc_op_header(subject.op, c, repair);

			CHECK_EQ(header.channel, SUBJECT_CHANNEL);
			CHECK_EQ(header.epoch, SUBJECT_EPOCH);
			CHECK_EQ(header.index & MMC_INDEX_MASK, c);
			CHECK_EQ((header.index & MMC_INDEX_REPAIR) != 0,
				 repair);
			CHECK_EQ(header.index & MMC_INDEX_CONTROL, 0);
		}
	subject_close(&subject);
}

/* When another rank announces a failure, the view shows its error and its culprit. */
static void a_failure(void)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_RECORD);
	struct subject subject;

	message.record.flags |= MMC_RECORD_FAILED;
	message.record.failure = MMC_ENOANSWER;
	message.record.culprit = 2;
	subject_open(&subject, &subject_config);
	subject_hear(&subject, 3, &message);
	CHECK(mmc_op_has_failed(subject.op));
	CHECK_EQ(mmc_op_error(subject.op), MMC_ENOANSWER);
	CHECK_EQ(mmc_op_culprit(subject.op), 2);
	subject_close(&subject);
}

/* The terms that another rank sends are merged into those of the operation. */
static void merged_terms(void)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_RECORD);
	struct subject subject;

	message.record.terms.window_bytes = 1234;
	subject_open(&subject, &subject_config);
	CHECK_EQ(mmc_op_terms(subject.op)->window_bytes, 60000);
	subject_hear(&subject, 0, &message);
	CHECK_EQ(mmc_op_terms(subject.op)->window_bytes, 1234);
	subject_close(&subject);
}

CHECK_MAIN(CHECK_TEST(a_new_operation), CHECK_TEST(missing_chunks),
	   CHECK_TEST(headers), CHECK_TEST(a_failure), CHECK_TEST(merged_terms))
