/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bits of mmc_request_present() (mpimcast/partial.h). They lie in memory of a request,
 * which several holders share: the last of them frees it.
 */
#ifndef MMC_SUPPORT_PRESENT_H
#define MMC_SUPPORT_PRESENT_H

#include <mpimcast/partial.h>
#include <stdint.h>

/*
 * Returns the bits at `words`, which lie in `memory`, with one holder; NULL if there is
 * not enough memory. Takes `memory`, as of malloc(), only if it returns bits.
 */
struct mmc_present *mmc_present_new(void *memory, const uint64_t *words,
				    uint32_t nbits);

/* Adds a holder, who calls mmc_present_free() in the end. Returns `present`. */
struct mmc_present *mmc_present_hold(struct mmc_present *present);

#endif
