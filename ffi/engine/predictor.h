/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predicts which chunks of an operation arrive, for direct placement (see
 * drivers/predictor.h). The chunks of a chain go to the subgroup of the chain's number,
 * and a datagram's position is that of its chunk in the chain.
 */
#ifndef MMC_ENGINE_PREDICTOR_H
#define MMC_ENGINE_PREDICTOR_H

#include "drivers/predictor.h"
#include "engine/state.h"

/* Returns the subgroup that carries a chunk with zero-copy receive. */
uint32_t mmc_request_subgroup(const struct mmc_request *request,
			      uint32_t chunk);

/*
 * Returns whether arrivals of an active operation can be predicted: those of uneven
 * blocks cannot, nor those of blocks with gaps between them in the user's memory.
 */
bool mmc_request_is_predictable(const struct mmc_request *request);

/*
 * Returns the predictor of an operation's chunks, which lasts as long as the operation.
 * The caller sets `region`.
 */
struct mmc_predictor mmc_request_predictor(const struct mmc_request *request);

#endif
