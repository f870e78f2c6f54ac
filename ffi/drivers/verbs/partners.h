/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The partners of a rank, to which it is connected: the ranks with which it exchanges
 * messages in a dissemination barrier. They are 2^k ranks away, in either direction,
 * and so include the neighbours in the ring of ranks.
 */
#ifndef MMC_DRIVERS_VERBS_PARTNERS_H
#define MMC_DRIVERS_VERBS_PARTNERS_H

#include "core/types.h"

#define MMC_VERBS_PARTNERS_MAX (2 * MMC_ROUNDS_MAX)

/*
 * Writes the partners of `rank`, each once, to `partners`, which has room for
 * MMC_VERBS_PARTNERS_MAX. Returns their number, which is equal for all ranks. Partners
 * are mutual: each rank is a partner of its partners.
 */
uint32_t mmc_verbs_partners(uint32_t rank, uint32_t nranks, uint32_t *partners);

/*
 * Returns the index of `partner` among the partners of `rank`, of which it must be one.
 */
uint32_t mmc_verbs_partner_index(uint32_t rank, uint32_t nranks,
				 uint32_t partner);

#endif
