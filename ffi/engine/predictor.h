/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predicts, for direct placement, which chunks of an operation arrive next in each
 * subgroup (see drivers/predictor.h). With zero-copy receive, chain number i uses
 * subgroup i, and the position of a datagram is the position of its chunk in the chain.
 */
#ifndef MMC_ENGINE_PREDICTOR_H
#define MMC_ENGINE_PREDICTOR_H

#include "drivers/predictor.h"
#include "engine/state.h"

/* Returns the subgroup that carries `chunk` if the team uses zero-copy receive. */
uint32_t mmc_request_subgroup(const struct mmc_request *request,
			      uint32_t chunk);

/*
 * Returns whether the arrivals of an active operation can be predicted. They cannot if
 * its blocks differ in size, or lie apart in the user's memory.
 */
bool mmc_request_is_predictable(const struct mmc_request *request);

/*
 * Returns a predictor of an operation's chunks, valid until the operation is closed.
 * The caller sets its `region`.
 */
struct mmc_predictor mmc_request_predictor(const struct mmc_request *request);

#endif
