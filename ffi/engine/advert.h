/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a request's memory that other ranks may read, and until when. */
#ifndef MMC_ENGINE_ADVERT_H
#define MMC_ENGINE_ADVERT_H

#include "engine/state.h"

/*
 * Returns an advert of the memory that the right neighbour may read as soon as the
 * operation starts: the bitmap of its present chunks, if the bitmap is registered, and
 * also the result, if that lies in engine memory. An advert whose generation is 0
 * offers nothing.
 */
struct mmc_advert mmc_request_advert(struct mmc_request *request);

/* Carries out the action REGISTER: registers the result, and tells the operation. */
void mmc_request_register(struct mmc_request *request);

/*
 * Deregisters the result if mmc_request_register() has registered it. If the operation
 * has `failed`, other ranks may still be reading the result: deregistration is then
 * deferred until the team closes.
 */
void mmc_request_deregister(struct mmc_request *request, bool failed);

#endif
