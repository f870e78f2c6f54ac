/* SPDX-License-Identifier: BSD-3-Clause */
/* Each function of core/operation/view.h returns a part of an operation's state. */
#include "core/operation/view.h"

#include "subject.h"

/* The operation under test runs on rank 1 of four, each with a block of five chunks. */
#define BLOCK_CHUNKS 5
#define OWN_FIRST BLOCK_CHUNKS
#define NCHUNKS (4 * BLOCK_CHUNKS)

/* The other three ranks, two of them named by what they do in a_failure(). */
#define OTHER 0
#define CULPRIT 2
#define REPORTER 3

/* A smaller window than subject_config has. */
#define SMALL_WINDOW_BYTES 1234

/* A new operation lacks the blocks of all other ranks, and has not failed. */
static void a_new_operation(void)
{
	struct subject subject;
	const struct mmc_block *own;

	subject_open(&subject, &subject_config);
	CHECK_EQ(mmc_op_epoch(subject.op), SUBJECT_EPOCH);
	CHECK_EQ(mmc_op_layout(subject.op)->nchunks, NCHUNKS);
	own = mmc_op_own_block(subject.op);
	CHECK_EQ(own->first, OWN_FIRST);
	CHECK_EQ(own->nchunks, BLOCK_CHUNKS);
	CHECK_EQ(mmc_op_missing_chunks(subject.op), NCHUNKS - BLOCK_CHUNKS);
	CHECK(!mmc_op_has_failed(subject.op));
	CHECK_EQ(mmc_op_error(subject.op), MMC_OK);
	CHECK_EQ(mmc_op_culprit(subject.op), MMC_PEER_NONE);
	CHECK_EQ(mmc_op_terms(subject.op)->signature_min,
		 subject_config.signature);
	subject_close(&subject);
}

/* Each new chunk lowers the number of missing chunks by one. A duplicate does not. */
static void missing_chunks(void)
{
	struct subject subject;
	uint32_t nmissing = NCHUNKS - BLOCK_CHUNKS;

	subject_open(&subject, &subject_config);
	subject_begin(&subject);
	for (uint32_t c = 0; c < NCHUNKS; c++) {
		if (c / BLOCK_CHUNKS == subject_config.rank)
			continue;
		CHECK_EQ(subject_deliver(&subject, c), MMC_VERDICT_PLACE);
		CHECK_EQ(mmc_op_missing_chunks(subject.op), --nmissing);
		subject_deliver(&subject, c);
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

/*
 * After another rank reports a failure, the operation has the error and the culprit of
 * that failure.
 */
static void a_failure(void)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_RECORD);
	struct subject subject;

	message.record.flags |= MMC_RECORD_FAILED;
	message.record.failure = MMC_ENOANSWER;
	message.record.culprit = CULPRIT;
	subject_open(&subject, &subject_config);
	subject_hear(&subject, REPORTER, &message);
	CHECK(mmc_op_has_failed(subject.op));
	CHECK_EQ(mmc_op_error(subject.op), MMC_ENOANSWER);
	CHECK_EQ(mmc_op_culprit(subject.op), CULPRIT);
	subject_close(&subject);
}

/* The window in an operation's terms is the smallest window of all ranks. */
static void merged_terms(void)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_RECORD);
	struct subject subject;

	message.record.terms.window_bytes = SMALL_WINDOW_BYTES;
	subject_open(&subject, &subject_config);
	CHECK_EQ(mmc_op_terms(subject.op)->window_bytes,
		 subject_config.window_bytes);
	subject_hear(&subject, OTHER, &message);
	CHECK_EQ(mmc_op_terms(subject.op)->window_bytes, SMALL_WINDOW_BYTES);
	subject_close(&subject);
}

CHECK_MAIN(CHECK_TEST(a_new_operation), CHECK_TEST(missing_chunks),
	   CHECK_TEST(headers), CHECK_TEST(a_failure), CHECK_TEST(merged_terms))
