/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AEGIS-128L (draft-irtf-cfrg-aegis-aead) of libaegis, opened at run time. Of a text that
 * is not encrypted, it computes AEGIS-128L's MAC.
 */
#ifndef MMC_DRIVERS_PROTECT_AEGIS_H
#define MMC_DRIVERS_PROTECT_AEGIS_H

#include "drivers/protect/primitive.h"

/* Valid once mmc_aegis_open() has returned 0. */
extern const struct mmc_primitive mmc_aegis;

/* As mmc_primitive_open(), but checks no answers; one thread at a time calls this. */
int mmc_aegis_open(const char *library);

#endif
