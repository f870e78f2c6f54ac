/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The FAULT setting as text and as clauses:
 *
 *     setting = "" | clause { ";" clause }
 *     clause  = key "=" value { "," key "=" value }    each key once
 *
 *     loss dup reorder corrupt   a probability: 0, 0.01, 1
 *     loss_period                1 to 1000000 datagrams, default 1
 *     delay_us                   0 to 10000000
 *     stall_ms                   0 to 10000, not with dir=tx
 *     seed                       0 to 2^64 - 1, default 0
 *     rank                       ranks joined by "+", default all
 *     dir                        rx (default) or tx
 *     kind                       multicast, control, repair joined by "+", or
 *                                all; default multicast+repair
 */
#ifndef MMC_DRIVERS_FAULT_SETTING_H
#define MMC_DRIVERS_FAULT_SETTING_H

#include "core/types.h"

/* The most clauses of a setting. */
#define MMC_FAULT_CLAUSES_MAX 8

struct mmc_fault_clause {
	/* Probabilities, in parts of 2^32. */
	uint64_t loss;
	uint64_t dup;
	uint64_t reorder;
	uint64_t corrupt;
	uint64_t loss_period; /* mean, in datagrams; see support/gilbert.h */
	uint64_t delay_us;
	uint64_t stall_ms;
	uint64_t seed;
	uint32_t kinds; /* bit i: datagrams of enum mmc_traffic i match */
	bool applies;	/* to the rank that the setting was read for */
	bool tx;	/* to datagrams that are sent, not to received ones */
};

struct mmc_fault_setting {
	struct mmc_fault_clause clauses[MMC_FAULT_CLAUSES_MAX];
	unsigned nclauses;
};

/*
 * Reads the setting `text` for `rank`. Returns 0, or -MMC_EINVAL if `text` is
 * malformed: mmc_last_error() then says what is wrong and what is allowed instead.
 * `setting` is written only on success.
 */
int mmc_fault_parse(const char *text, uint32_t rank,
		    struct mmc_fault_setting *setting);

#endif
