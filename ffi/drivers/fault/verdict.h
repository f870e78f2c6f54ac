/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides what happens to a datagram. The clauses decide one after the other. Each
 * draws numbers of its own, which depend on nothing but (seed, rank, place of the
 * clause) and the datagrams that it has seen before.
 */
#ifndef MMC_DRIVERS_FAULT_VERDICT_H
#define MMC_DRIVERS_FAULT_VERDICT_H

#include "core/wire/header.h"
#include "drivers/fault/setting.h"
#include "support/prng.h"

/* A clause with its state. */
struct mmc_fault_clause_state {
	struct mmc_fault_clause clause;
	struct mmc_prng prng;
	uint64_t phase_ns; /* of its stalls */
};

struct mmc_fault_judge {
	struct mmc_fault_clause_state clauses[MMC_FAULT_CLAUSES_MAX];
	unsigned nclauses;
	enum mmc_checksum checksum;
};

struct mmc_fault_verdict {
	bool lost;
	bool corrupt;
	uint32_t bit;	 /* the one that is flipped if `corrupt` */
	uint32_t behind; /* how many later datagrams go first */
	uint32_t ncopies;
	uint64_t delay_ns;
};

/*
 * Prepares the clauses of `setting` that apply to `rank`. Returns 0, or -MMC_EINVAL, on
 * all ranks alike, if receivers with `checksum` would not notice every datagram that
 * the setting corrupts (see fault.h).
 */
int mmc_fault_judge_init(struct mmc_fault_judge *judge,
			 const struct mmc_fault_setting *setting, uint32_t rank,
			 enum mmc_checksum checksum);

/*
 * Decides on a datagram of `nbytes` whose first `head_bytes` are at `head`. A head that
 * is shorter than a header counts as control.
 */
struct mmc_fault_verdict mmc_fault_judge_datagram(struct mmc_fault_judge *judge,
						  bool tx, const uint8_t *head,
						  uint32_t head_bytes,
						  uint32_t nbytes);

/* Returns when the stall at `now_ns` ends; `now_ns` if there is none. */
uint64_t mmc_fault_judge_stall_end_ns(const struct mmc_fault_judge *judge,
				      uint64_t now_ns);

#endif
