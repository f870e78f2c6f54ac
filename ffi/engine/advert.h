/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a request's memory the right neighbour may read, and until when. */
#ifndef MMC_ENGINE_ADVERT_H
#define MMC_ENGINE_ADVERT_H

#include "engine/state.h"

/*
 * Returns the generation of the adverts of the request's operation, or 0 if the right
 * neighbour can never read the operation's memory.
 */
uint64_t mmc_request_generation(struct mmc_request *request);

/*
 * Carries out the action REGISTER: lets the right neighbour read the operation's memory
 * and the result, and tells the operation.
 */
void mmc_request_register(struct mmc_request *request);

/* Ends what mmc_request_register() lets the neighbour read, if anything. */
void mmc_request_revoke(struct mmc_request *request);

#endif
