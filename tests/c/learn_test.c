/* SPDX-License-Identifier: BSD-3-Clause */
/* A completed operation counts the time of its stages, and tells the path of losses. */
#include "one_operation.h"

#define RANK 1
#define BLOCK_CHUNKS 5

/* The times of the stages add up to the time of the whole operation. */
static void stages_fill_the_time(void)
{
	static struct one one;
	const uint64_t *counted = one.counters.value;
	uint64_t begin_ns;

	one_open(&one, &one_config);
	begin_ns = one.now_ns;
	one.now_ns += 3 * MMC_MS_NS;
	one_begin(&one);
	CHECK_EQ(counted[MMC_COUNT_ENTRY_NS], 3 * MMC_MS_NS);
	one.now_ns += 5 * MMC_MS_NS;
	one_bring_all(&one);
	one.now_ns += 7 * MMC_MS_NS;
	one_run(&one);
	CHECK_EQ(counted[MMC_COUNT_MULTICAST_NS], 5 * MMC_MS_NS);
	CHECK_EQ(counted[MMC_COUNT_REPAIR_NS], 7 * MMC_MS_NS);
	one.now_ns += 11 * MMC_MS_NS;
	one_all_are_done(&one);
	one_run(&one);
	CHECK_EQ(counted[MMC_COUNT_RELEASE_NS], 11 * MMC_MS_NS);
	CHECK_EQ(counted[MMC_COUNT_ENTRY_NS] + counted[MMC_COUNT_MULTICAST_NS] +
			 counted[MMC_COUNT_REPAIR_NS] +
			 counted[MMC_COUNT_RELEASE_NS],
		 one.now_ns - begin_ns);
	one_close(&one);
}

/* The path counts as lossy once others have asked for this rank's chunks. */
static void a_loss_is_learnt(void)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct mmc_message nak = one_message(MMC_MESSAGE_NAK);
		static struct one one;

		nak.nitems = 1;
		nak.runs[0] = (struct mmc_run){ RANK * BLOCK_CHUNKS, 2 };
		one_open(&one, &one_config);
		one_begin(&one);
		if (lost)
			one_hear(&one, 3, &nak);
		one.now_ns += MMC_MS_NS;
		one_bring_all(&one);
		one_run(&one);
		CHECK(one.op->state > MMC_OP_FLOW);
		CHECK_EQ(one.op->config.path->lossy, lost);
		one_close(&one);
	}
}

CHECK_MAIN(CHECK_TEST(stages_fill_the_time), CHECK_TEST(a_loss_is_learnt))
