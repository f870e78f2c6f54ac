/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to an operation makes it due if that may let something happen, and only
 * then. That nothing is missed, the networks of ranks.h check.
 */
#include "core/operation/due.h"

#include "subject.h"

static struct subject subject;

static bool is_due(void)
{
	return mmc_op_due_ns(subject.op) <= subject.now_ns;
}

/* Begins the flow, hears the first chunk of rank 2, and polls until nothing is due. */
static void begin(void)
{
	struct mmc_op_config config = subject_config;

	config.block_bytes = 1000;
	subject_open(&subject, &config);
	subject_begin(&subject);
	subject_deliver(&subject, 20);
	subject_run(&subject);
	CHECK(!is_due());
}

static void chunks_in_order_are_not_due(void)
{
	begin();
	for (uint32_t chunk = 21; chunk < 29; chunk++) {
		subject_deliver(&subject, chunk);
		CHECK(!is_due());
	}
	subject_deliver(&subject, 29); /* its sender has ended */
	CHECK(is_due());
	subject_close(&subject);
}

static void a_gap_is_due(void)
{
	begin();
	subject_deliver(&subject, 22);
	CHECK(is_due());
	subject_close(&subject);
}

static void the_last_chunk_is_due(void)
{
	begin();
	for (uint32_t chunk = 0; chunk < 40; chunk++)
		if (chunk / 10 != subject.op->config.rank && chunk != 35)
			subject_deliver(&subject, chunk);
	subject_run(&subject);
	CHECK(!is_due());
	CHECK_EQ(subject.op->state, MMC_OP_FLOW);
	subject_deliver(&subject, 35);
	CHECK(is_due());
	subject_run(&subject);
	CHECK_EQ(subject.op->state, MMC_OP_RELEASE);
	subject_close(&subject);
}

static void messages_and_failures_are_due(void)
{
	const struct mmc_message record = subject_message(MMC_MESSAGE_RECORD);

	begin();
	subject_hear(&subject, 3, &record);
	CHECK(is_due());
	subject_run(&subject);
	CHECK(!is_due());
	mmc_op_fail(subject.op, MMC_EIO, MMC_PEER_NONE, false);
	CHECK(is_due());
	subject_close(&subject);
}

/* Waits count from the moment of an advance, even if the poll comes later. */
static void waits_count_from_an_advance(void)
{
	begin();
	subject.now_ns += 5 * MMC_MS_NS;
	subject_deliver(&subject, 21);
	subject.now_ns += 3 * MMC_MS_NS;
	subject_run(&subject);
	CHECK_EQ(subject.op->liveness.stalled_ns, 3 * MMC_MS_NS);
	subject_close(&subject);
}

CHECK_MAIN(CHECK_TEST(chunks_in_order_are_not_due), CHECK_TEST(a_gap_is_due),
	   CHECK_TEST(the_last_chunk_is_due),
	   CHECK_TEST(messages_and_failures_are_due),
	   CHECK_TEST(waits_count_from_an_advance))
