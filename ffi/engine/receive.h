/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: datagrams are checked, and handed to the operation that they are for. */
#ifndef MMC_ENGINE_RECEIVE_H
#define MMC_ENGINE_RECEIVE_H

#include "engine/state.h"

/*
 * Handles the first of `nevents` events, at least one, a datagram that the team's endpoint
 * has received, and those behind it that carry the next chunks of the same run. Counts
 * and drops a datagram that is corrupt or fits no stream. Returns how many it has
 * handled. Their memory is not used after the call.
 */
unsigned mmc_team_receive(struct mmc_team *team, const struct mmc_event *events,
			  unsigned nevents, uint64_t now_ns);

/* Handles the event that payloads are in place which the driver was to put there. */
void mmc_team_on_placed(struct mmc_team *team, const struct mmc_event *event);

/*
 * Takes note of a chunk that has arrived by multicast after its operation had closed, so
 * that too little was waited for it.
 */
void mmc_stream_note_late(struct mmc_stream *stream);

/*
 * Puts the payload of a claimed chunk in its place, and tells the operation; if the
 * driver does that later, the operation is told then.
 */
void mmc_request_place(struct mmc_request *request, uint32_t chunk,
		       const uint8_t *payload, uint32_t nbytes);

/*
 * Offers a chunk that `source` has sent to an operation, and places the payload if the
 * chunk is new. `index` is the one in the datagram's header. Counts a chunk that
 * `source` must not send as foreign, and returns false.
 */
bool mmc_request_receive_chunk(struct mmc_request *request, uint32_t source,
			       uint32_t index, const uint8_t *payload,
			       uint32_t nbytes, uint64_t now_ns);

#endif
