/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides what happens to a datagram. The clauses of a FAULT setting decide one after
 * the other. Each has a random generator of its own, so its decisions depend only on
 * the seed, the rank, the index of the clause, and the datagrams that it has matched
 * before.
 */
#ifndef MMC_DRIVERS_FAULT_VERDICT_H
#define MMC_DRIVERS_FAULT_VERDICT_H

#include "core/wire/header.h"
#include "drivers/fault/setting.h"
#include "support/gilbert.h"
#include "support/prng.h"

struct mmc_fault_clause_state {
	struct mmc_fault_clause clause;
	struct mmc_prng prng;
	struct mmc_gilbert losses;
	/* How far the clause is in its period of stalls at time 0. */
	uint64_t phase_ns;
};

struct mmc_fault_judge {
	struct mmc_fault_clause_state clauses[MMC_FAULT_CLAUSES_MAX];
	unsigned nclauses;
	enum mmc_checksum checksum;
};

/* What happens to one datagram. */
struct mmc_fault_verdict {
	bool lost; /* if so, nothing else matters */
	bool corrupt;
	uint32_t bit;	   /* the bit of the datagram to flip if `corrupt` */
	uint32_t behind;   /* how many later datagrams must pass before it */
	uint32_t ncopies;  /* how often it passes: twice if duplicated once */
	uint64_t delay_ns; /* how long it is held back */
};

/*
 * Prepares the clauses of `setting` that apply to `rank`. Returns 0, or -MMC_EINVAL if
 * receivers with `checksum` might not notice a datagram that the setting corrupts (see
 * fault.h). The same setting has the same result on all ranks.
 */
int mmc_fault_judge_init(struct mmc_fault_judge *judge,
			 const struct mmc_fault_setting *setting, uint32_t rank,
			 enum mmc_checksum checksum);

/*
 * Decides what happens to a datagram of `nbytes` that begins with the `head_bytes` at
 * `head` and is sent if `tx`, else received. A datagram whose head is shorter than a
 * header counts as control.
 */
struct mmc_fault_verdict mmc_fault_judge_datagram(struct mmc_fault_judge *judge,
						  bool tx, const uint8_t *head,
						  uint32_t head_bytes,
						  uint32_t nbytes);

/* Returns when the stall that is under way at `now_ns` ends, or `now_ns` if none is. */
uint64_t mmc_fault_judge_stall_end_ns(const struct mmc_fault_judge *judge,
				      uint64_t now_ns);

#endif
