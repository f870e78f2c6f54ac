/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation whose parity another thread computes, and which that thread mends. */
#include "core/operation/parity.h"

#include "coded_subject.h"

/* Where mending takes no time of those who receive, it need not wait for that. */
static void mending_aside_does_not_wait(void)
{
	struct mmc_op_config config = config_of(K, M);
	static struct subject subject;
	uint32_t first = FAR * BLOCK_CHUNKS;

	config.mends_aside = true;
	subject_open(&subject, &config);
	subject_begin(&subject);
	for (uint32_t i = 1; i < BLOCK_CHUNKS; i++)
		subject_deliver(&subject, first + i);
	CHECK(hear_parity(&subject, 0, 0) >= 0);
	subject.path.backlog = true;
	subject_run(&subject);
	CHECK(subject_find_done(&subject, MMC_ACTION_MEND) != NULL);
	subject_close(&subject);
}

/* Unsent is the parity of the groups that no action has named, once the flow has begun. */
static void unsent_parity(void)
{
	unsigned nunsent = 0;
	unsigned nnamed = 0;

	for (uint32_t rank = 0; rank < 4; rank++) {
		struct mmc_op_config config = config_of(K, M);
		static struct subject subject;
		struct mmc_run unsent;
		uint32_t nactions = 0;

		config.nchains = 1;
		config.rank = rank;
		subject_open(&subject, &config);
		CHECK_EQ(mmc_op_unsent_parity(subject.op).count, 0);
		subject_begin(&subject);
		for (unsigned k = 0; k < subject.ndone; k++)
			nactions += subject.done[k].kind == MMC_ACTION_PARITY;
		unsent = mmc_op_unsent_parity(subject.op);
		CHECK_EQ(unsent.first, nactions);
		CHECK_EQ(unsent.first + unsent.count, 3);
		nunsent += unsent.count;
		nnamed += nactions;
		subject_close(&subject);
	}
	CHECK(nunsent > 0);
	CHECK(nnamed > 0);
}

CHECK_MAIN(CHECK_TEST(mending_aside_does_not_wait), CHECK_TEST(unsent_parity))
