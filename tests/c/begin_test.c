/* SPDX-License-Identifier: BSD-3-Clause */
/* Once all ranks have entered, an operation follows the terms that they agreed on. */
#include "one_operation.h"

#define RANK 1
#define LEFT 0
#define NRANKS 4

/* The plan uses the least window of all ranks. */
static void the_least_window(void)
{
	struct mmc_message message = one_message(MMC_MESSAGE_RECORD);
	static struct one wide;
	static struct one narrow;

	one_open(&wide, &one_config);
	one_begin(&wide);
	message.record.terms.window_bytes = 400;
	one_open(&narrow, &one_config);
	one_hear(&narrow, LEFT, &message);
	one_begin(&narrow);
	CHECK_EQ(narrow.op->record.terms.window_bytes, 400);
	CHECK(narrow.op->schedule.window_chunks <
	      wide.op->schedule.window_chunks);
	CHECK(mmc_op_has_begun(narrow.op));
	one_close(&wide);
	one_close(&narrow);
}

/*
 * If some rank gets no multicast, none is sent: blocks go from neighbour to neighbour.
 */
static void the_deaf_are_served_by_neighbours(void)
{
	struct mmc_message message = one_message(MMC_MESSAGE_RECORD);
	const struct mmc_message *nak;
	static struct one one;

	message.record.terms.deaf = mmc_terms_deaf(3, 2);
	one_open(&one, &one_config);
	one_hear(&one, LEFT, &message);
	one_begin(&one);
	CHECK(one_find_done(&one, MMC_ACTION_SEND) == NULL);
	CHECK_EQ(one.counters.value[MMC_COUNT_UNICAST_EPOCHS], 1);
	nak = one_find_said(&one, LEFT, MMC_MESSAGE_NAK);
	for (unsigned i = 0; i < 100 && nak == NULL; i++) {
		one_run_next(&one, 2 * MMC_S_NS);
		nak = one_find_said(&one, LEFT, MMC_MESSAGE_NAK);
	}
	CHECK(nak != NULL);
	CHECK_EQ(one.counters.value[MMC_COUNT_RX_LOST_CHUNKS], 0);
	one_close(&one);
}

/* If ranks have called different operations, all ranks learn of it and fail. */
static void disagreement_fails_all_ranks(void)
{
	struct mmc_message message = one_message(MMC_MESSAGE_RECORD);
	static struct one one;

	message.record.terms.signature_max = 8;
	one_open(&one, &one_config);
	for (uint32_t r = 0; r < NRANKS; r++)
		if (r != RANK)
			one_hear(&one, r, &message);
	one_run(&one);
	CHECK(one.op->record.flags & MMC_RECORD_FAILED);
	CHECK_EQ(one.op->record.failure, MMC_EMISMATCH);
	CHECK(one_find_said(&one, MMC_PEER_ALL, MMC_MESSAGE_RECORD) != NULL);
	CHECK(one_find_done(&one, MMC_ACTION_FAILED) != NULL);
	CHECK(one_find_done(&one, MMC_ACTION_CLOSED) != NULL);
	one_close(&one);
}

CHECK_MAIN(CHECK_TEST(the_least_window),
	   CHECK_TEST(the_deaf_are_served_by_neighbours),
	   CHECK_TEST(disagreement_fails_all_ranks))
