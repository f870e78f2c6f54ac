/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns datagrams into events of the core. */
#ifndef MMC_ENGINE_RECEIVE_H
#define MMC_ENGINE_RECEIVE_H

#include "engine/state.h"

/* Handles a datagram for `team`; its memory is the driver's again on return. */
void mmc_team_receive(struct mmc_team *team, const struct mmc_event *event,
		      uint64_t now_ns);

/* Handles the completion of a placement that the driver carried out. */
void mmc_team_placed(struct mmc_team *team, uint64_t cookie);

/* Puts the payload of a claimed chunk in its place. */
void mmc_request_place(struct mmc_request *request, uint32_t chunk,
		       const uint8_t *payload, uint32_t nbytes);

/* Offers a chunk to an operation, and places its payload if the chunk is new. */
void mmc_request_chunk(struct mmc_request *request, uint32_t source,
		       uint32_t index, const uint8_t *payload, uint32_t nbytes,
		       uint64_t now_ns);

#endif
