/* SPDX-License-Identifier: BSD-3-Clause */
/* Gaps become late after the allowance, and lost once the link is idle. */
#include "subject.h"

#define FAR 3
#define BLOCK_CHUNKS 5

/* Begins an operation, and lets the far rank's chunks from the second on arrive. */
static void begin(struct subject *subject)
{
	subject_open(subject, &subject_config);
	subject_begin(subject);
	for (uint32_t i = 1; i < BLOCK_CHUNKS; i++)
		CHECK_EQ(subject_deliver(subject, FAR * BLOCK_CHUNKS + i),
			 MMC_VERDICT_PLACE);
	subject_run(subject);
}

/* A chunk that arrives within the allowance is not late. */
static void the_allowance_is_waited_for(void)
{
	static struct subject subject;
	struct mmc_loss *loss;

	begin(&subject);
	loss = &subject.op->repair.loss;
	CHECK_EQ(loss->gap_ns, subject.now_ns + loss->allowance_ns);
	subject.now_ns += loss->allowance_ns / 2;
	CHECK_EQ(subject_deliver(&subject, FAR * BLOCK_CHUNKS),
		 MMC_VERDICT_PLACE);
	subject.now_ns += loss->allowance_ns;
	subject_run(&subject);
	CHECK_EQ(loss->nlost, 0);
	subject_close(&subject);
}

/* What is missing after it frees the window, and is asked for on an idle link. */
static void a_gap_is_late_and_then_lost(void)
{
	static struct subject subject;
	struct mmc_loss *loss;
	uint32_t chain;
	uint32_t ndrained;

	begin(&subject);
	loss = &subject.op->repair.loss;
	chain = FAR % loss->schedule.nchains;
	ndrained = loss->chains[chain].ndrained;
	subject.now_ns += loss->allowance_ns;
	mmc_loss_lose_gaps(loss, &subject.op->claimed, subject.now_ns);
	CHECK_EQ(loss->chains[chain].ndrained, ndrained + 1);
	CHECK_EQ(loss->nlost, 0);
	for (unsigned i = 0; i < 10; i++)
		subject_run_next(&subject, subject.now_ns + MMC_S_NS);
	CHECK_EQ(loss->nlost, 1);
	CHECK(mmc_bitmap_test(&loss->lost, FAR * BLOCK_CHUNKS));
	subject_close(&subject);
}

CHECK_MAIN(CHECK_TEST(the_allowance_is_waited_for),
	   CHECK_TEST(a_gap_is_late_and_then_lost))
