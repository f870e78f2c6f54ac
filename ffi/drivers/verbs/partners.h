/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom a rank is connected to: its ring neighbours and, which includes them,
 * the partners of a dissemination, the ranks 2^k away either way.
 */
#ifndef MMC_DRIVERS_VERBS_PARTNERS_H
#define MMC_DRIVERS_VERBS_PARTNERS_H

#include "core/types.h"

#define MMC_VERBS_PARTNERS_MAX (2 * MMC_ROUNDS_MAX)

/*
 * Writes the partners of `rank`, each once, to `partners`, which has room for
 * MMC_VERBS_PARTNERS_MAX. Returns how many there are: as many for each rank.
 * Whoever is a partner of another has it as its own.
 */
uint32_t mmc_verbs_partners(uint32_t rank, uint32_t nranks, uint32_t *partners);

/* Which one `partner` is among the partners of `rank`, which it is. */
uint32_t mmc_verbs_partner_index(uint32_t rank, uint32_t nranks,
				 uint32_t partner);

#endif
