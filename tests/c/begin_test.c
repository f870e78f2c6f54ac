/* SPDX-License-Identifier: BSD-3-Clause */
/* Once all ranks have entered, an operation follows the terms that they agreed on. */
#include "subject.h"

#define RANK 1
#define LEFT 0
#define NRANKS 4

/* The plan uses the least window of all ranks. */
static void the_least_window(void)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_RECORD);
	static struct subject wide;
	static struct subject narrow;

	subject_open(&wide, &subject_config);
	subject_begin(&wide);
	message.record.terms.window_bytes = 400;
	subject_open(&narrow, &subject_config);
	subject_hear(&narrow, LEFT, &message);
	subject_begin(&narrow);
	CHECK_EQ(narrow.op->record.terms.window_bytes, 400);
	CHECK(narrow.op->schedule.window_chunks <
	      wide.op->schedule.window_chunks);
	CHECK(mmc_op_has_begun(narrow.op));
	subject_close(&wide);
	subject_close(&narrow);
}

/* Returns how many chunks the operation sends first over a link of this rate. */
static uint32_t first_train(uint64_t rate_bytes_per_s)
{
	struct mmc_op_config config = subject_config;
	const struct mmc_action *first;
	static struct subject subject;
	uint32_t count = 0;

	config.block_bytes = 100 * config.chunk_bytes;
	config.train_chunks = 44;
	config.window_bytes = config.source_bytes = 1000000;
	subject_open(&subject, &config);
	mmc_path_set_rate(&subject.path, rate_bytes_per_s);
	subject_begin(&subject);
	first = subject_find_done(&subject, MMC_ACTION_SEND);
	if (CHECK(first != NULL))
		count = first->run.count;
	subject_close(&subject);
	return count;
}

/* What leaves in one go is short on a slow link, and long on a fast one. */
static void trains_follow_the_rate(void)
{
	CHECK_EQ(first_train(100000), MMC_BATCH_CHUNKS_MIN);
	CHECK_EQ(first_train(500000), 10);
	CHECK_EQ(first_train(1000000000), 44);
}

/*
 * If some rank gets no multicast, none is sent: blocks go from neighbour to neighbour.
 */
static void the_deaf_are_served_by_neighbours(void)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_RECORD);
	const struct mmc_message *nak;
	static struct subject subject;

	message.record.terms.deaf = mmc_terms_deaf(3, 2);
	subject_open(&subject, &subject_config);
	subject_hear(&subject, LEFT, &message);
	subject_begin(&subject);
	CHECK(subject_find_done(&subject, MMC_ACTION_SEND) == NULL);
	CHECK_EQ(subject.counters.value[MMC_COUNT_UNICAST_EPOCHS], 1);
	nak = subject_find_said(&subject, LEFT, MMC_MESSAGE_NAK);
	for (unsigned i = 0; i < 100 && nak == NULL; i++) {
		subject_run_next(&subject, 2 * MMC_S_NS);
		nak = subject_find_said(&subject, LEFT, MMC_MESSAGE_NAK);
	}
	CHECK(nak != NULL);
	CHECK_EQ(subject.counters.value[MMC_COUNT_RX_LOST_CHUNKS], 0);
	subject_close(&subject);
}

/* If ranks have called different operations, all ranks learn of it and fail. */
static void disagreement_fails_all_ranks(void)
{
	struct mmc_message message = subject_message(MMC_MESSAGE_RECORD);
	static struct subject subject;

	message.record.terms.signature_max = 8;
	subject_open(&subject, &subject_config);
	for (uint32_t r = 0; r < NRANKS; r++)
		if (r != RANK)
			subject_hear(&subject, r, &message);
	subject_run(&subject);
	CHECK(subject.op->record.flags & MMC_RECORD_FAILED);
	CHECK_EQ(subject.op->record.failure, MMC_EMISMATCH);
	CHECK(subject_find_said(&subject, MMC_PEER_ALL, MMC_MESSAGE_RECORD) !=
	      NULL);
	CHECK(subject_find_done(&subject, MMC_ACTION_FAILED) != NULL);
	CHECK(subject_find_done(&subject, MMC_ACTION_CLOSED) != NULL);
	subject_close(&subject);
}

CHECK_MAIN(CHECK_TEST(the_least_window), CHECK_TEST(trains_follow_the_rate),
	   CHECK_TEST(the_deaf_are_served_by_neighbours),
	   CHECK_TEST(disagreement_fails_all_ranks))
