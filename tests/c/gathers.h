/* SPDX-License-Identifier: BSD-3-Clause */
/* Allgathers of two ranks, of which rank 0 has a proxy. */
#ifndef MMC_TESTS_GATHERS_H
#define MMC_TESTS_GATHERS_H

#include "offloaded.h"

#define NBYTES 5000

static uint8_t results[RANKS_MAX][RANKS_MAX * NBYTES];

static struct job job;

static inline void begin_job(void)
{
	/* The host beats so seldom that no test ends by that. */
	job = (struct job){
		.nranks = 2,
		.proxied = 1,
		.timeout_ns = 1000 * MMC_S_NS,
	};
	begin_proxy();
	open_job(&job);
}

static inline void end_job(void)
{
	close_job(&job);
	end_proxy();
}

/* Returns an Allgather in place, into which rank `r` has put its block. */
static inline struct mmc_operation gather(uint32_t r, uint8_t *recv,
					  uint8_t value)
{
	memset(recv, 0, 2 * NBYTES);
	memset(recv + r * NBYTES, value, NBYTES);
	return (struct mmc_operation){
		.kind = MMC_ALLGATHER,
		.block_bytes = NBYTES,
		.recv = recv,
	};
}

#endif
