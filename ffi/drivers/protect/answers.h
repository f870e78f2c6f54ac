/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Known answers: published results by which a primitive shows that its library computes
 * what its name says, on this processor.
 */
#ifndef MMC_DRIVERS_PROTECT_ANSWERS_H
#define MMC_DRIVERS_PROTECT_ANSWERS_H

#include "drivers/protect/primitive.h"

/*
 * Returns whether a primitive of `kind` gives the known answers of its kind, and refuses
 * them with one bit of text or tag changed.
 */
bool mmc_answers_are_right(const struct mmc_primitive *primitive,
			   enum mmc_primitive_kind kind);

/* Returns whether mmc_libcrypto_derive() gives the known answer of RFC 5869, A.3. */
bool mmc_answers_derived(void);

#endif
