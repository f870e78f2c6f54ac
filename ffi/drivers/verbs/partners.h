/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks that a rank is connected to: the partners of a dissemination, which are 2^k
 * ranks away in either direction. They include its ring neighbours.
 */
#ifndef MMC_DRIVERS_VERBS_PARTNERS_H
#define MMC_DRIVERS_VERBS_PARTNERS_H

#include "core/types.h"

#define MMC_VERBS_PARTNERS_MAX (2 * MMC_ROUNDS_MAX)

/*
 * Writes the partners of `rank`, each once, to `partners`, which has room for
 * MMC_VERBS_PARTNERS_MAX. Returns their number, which is the same for each rank. If a
 * rank is a partner of another, that one is a partner of it.
 */
uint32_t mmc_verbs_partners(uint32_t rank, uint32_t nranks, uint32_t *partners);

/* Returns the index of `partner` among the partners of `rank`; it must be one. */
uint32_t mmc_verbs_partner_index(uint32_t rank, uint32_t nranks,
				 uint32_t partner);

#endif
