/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation with a code, of which each rank has five chunks; see subject.h. */
#ifndef MMC_TESTS_CODED_SUBJECT_H
#define MMC_TESTS_CODED_SUBJECT_H

#include "core/operation/parity.h"
#include "subject.h"

#define K 2
#define M 1
#define FAR 3
#define BLOCK_CHUNKS 5

static inline struct mmc_op_config config_of(uint32_t data, uint32_t parity)
{
	struct mmc_op_config config = subject_config;

	config.code_data = data;
	config.code_parity = parity;
	return config;
}

/* Returns the slot for a parity chunk of the far rank, as it would arrive. */
static inline int hear_parity(struct subject *subject, uint32_t group,
			      uint32_t row)
{
	return mmc_op_on_parity(subject->op, FAR,
				MMC_INDEX_PARITY |
					group << MMC_INDEX_GROUP_SHIFT | row,
				100, subject->now_ns);
}

/* Returns the action that mends this group of the far rank; fails the test if there is none. */
static inline const struct mmc_action *find_mend(const struct subject *subject,
						 uint32_t group)
{
	const struct mmc_action *action =
		subject_find_done(subject, MMC_ACTION_MEND);

	if (CHECK(action != NULL)) {
		CHECK_EQ(action->peer, FAR);
		CHECK_EQ(action->first, group);
	}
	return action;
}

#endif
