/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks an adapter's device as its firmware does. */
#ifndef MMC_TESTS_ASKING_H
#define MMC_TESTS_ASKING_H

#include <mpimcast/abi/nic.h>

#include "offload/ring.h"

/* Poses a question whose body lies at an offset in the adapter's memory. */
static inline void pose(struct mmc_nic *nic, enum mmc_nic_question question,
			uint64_t body_offset, uint32_t body_bytes)
{
	struct mmc_nic_ask *asked = &nic->ask;

	asked->question = question;
	asked->body_offset = body_offset;
	asked->body_bytes = question == MMC_NIC_REGISTER ? body_bytes : 0;
	mmc_ring_show(&asked->nasked, asked->nasked + 1);
}

#endif
