/* SPDX-License-Identifier: BSD-3-Clause */
/* From datagrams to events of the core. */
#ifndef MMC_ENGINE_RECEIVE_H
#define MMC_ENGINE_RECEIVE_H

#include "engine/state.h"

/* A datagram has come for `team`; its memory is the driver's on return. */
void mmc_team_receive(struct mmc_team *team, const struct mmc_event *event,
		      uint64_t now_ns);

/* A placement that took its time has completed. */
void mmc_team_placed(struct mmc_team *team, uint64_t cookie);

/* Puts the payload of a claimed chunk in its place. */
void mmc_request_place(struct mmc_request *request, uint32_t chunk,
		       const uint8_t *payload, uint32_t nbytes);

/* Brings a chunk to an operation: the payload is placed if it is new. */
void mmc_request_chunk(struct mmc_request *request, uint32_t source,
		       uint32_t index, const uint8_t *payload, uint32_t nbytes,
		       uint64_t now_ns);

#endif
