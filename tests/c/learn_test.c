/* SPDX-License-Identifier: BSD-3-Clause */
/* A completed operation counts the time of its stages, and tells the path of losses. */
#include "core/operation/learn.h"

#include "subject.h"

#define RANK 1
#define BLOCK_CHUNKS 5

/* The times of the stages add up to the time of the whole operation. */
static void stages_fill_the_time(void)
{
	static struct subject subject;
	const uint64_t *counted = subject.counters.value;
	uint64_t begin_ns;

	subject_open(&subject, &subject_config);
	begin_ns = subject.now_ns;
	subject.now_ns += 3 * MMC_MS_NS;
	subject_begin(&subject);
	CHECK_EQ(counted[MMC_COUNT_ENTRY_NS], 3 * MMC_MS_NS);
	subject.now_ns += 5 * MMC_MS_NS;
	subject_deliver_all(&subject);
	subject.now_ns += 7 * MMC_MS_NS;
	subject_run(&subject);
	CHECK_EQ(counted[MMC_COUNT_MULTICAST_NS], 5 * MMC_MS_NS);
	CHECK_EQ(counted[MMC_COUNT_REPAIR_NS], 7 * MMC_MS_NS);
	subject.now_ns += 11 * MMC_MS_NS;
	subject_all_are_done(&subject);
	subject_run(&subject);
	CHECK_EQ(counted[MMC_COUNT_RELEASE_NS], 11 * MMC_MS_NS);
	CHECK_EQ(counted[MMC_COUNT_ENTRY_NS] + counted[MMC_COUNT_MULTICAST_NS] +
			 counted[MMC_COUNT_REPAIR_NS] +
			 counted[MMC_COUNT_RELEASE_NS],
		 subject.now_ns - begin_ns);
	subject_close(&subject);
}

/* The path counts as lossy once others have asked for this rank's chunks. */
static void a_loss_is_learnt(void)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct mmc_message nak = subject_message(MMC_MESSAGE_NAK);
		static struct subject subject;

		nak.nitems = 1;
		nak.runs[0] = (struct mmc_run){ RANK * BLOCK_CHUNKS, 2 };
		subject_open(&subject, &subject_config);
		subject_begin(&subject);
		if (lost)
			subject_hear(&subject, 3, &nak);
		subject.now_ns += MMC_MS_NS;
		subject_deliver_all(&subject);
		subject_run(&subject);
		CHECK(subject.op->state > MMC_OP_FLOW);
		CHECK_EQ(subject.op->config.path->nlossy > 0, lost);
		subject_close(&subject);
	}
}

/* Only a window that limits an operation is widened, if a rank waits for processors. */
static void a_wait_is_learnt(void)
{
	for (uint64_t percent = 0; percent <= 100; percent += 10)
		for (uint32_t wide = 0; wide < 2; wide++) {
			struct mmc_op_config config = subject_config;
			static struct subject subject;
			struct mmc_window *window;

			config.window_bytes = wide ? UINT32_MAX : 300;
			subject_open(&subject, &config);
			subject_begin(&subject);
			window = &subject.op->config.path->window;
			window->bytes = 300;
			subject.now_ns += MMC_MS_NS;
			subject_deliver_all(&subject);
			subject_run(&subject);
			mmc_op_learn_delay(subject.op, percent * MMC_MS_NS,
					   100 * MMC_MS_NS);
			CHECK_EQ(window->widening,
				 percent >= MMC_WINDOW_WIDEN_PERCENT && !wide);
			subject_close(&subject);
		}
}

CHECK_MAIN(CHECK_TEST(a_wait_is_learnt), CHECK_TEST(stages_fill_the_time),
	   CHECK_TEST(a_loss_is_learnt))
