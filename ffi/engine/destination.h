/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells devices that place by themselves in which memory a sender's payloads belong. */
#ifndef MMC_ENGINE_DESTINATION_H
#define MMC_ENGINE_DESTINATION_H

#include "drivers/predictor.h"

/*
 * Implements `destination` of struct mmc_predictor; `context` is the request, and `source` a
 * rank. This rank's own block is the user's: nobody may write there.
 */
struct mmc_destination mmc_request_destination(const void *context,
					       uint32_t source);

#endif
