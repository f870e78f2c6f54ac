/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending: control messages and chunks become datagrams. */
#ifndef MMC_ENGINE_SEND_H
#define MMC_ENGINE_SEND_H

#include "engine/state.h"

/* A control message, encoded with its header. */
struct mmc_letter {
	const uint8_t *bytes;
	uint32_t nbytes;
};

/*
 * Sends control messages, of which there are 1 to MMC_PARTS_MAX, to `peer`, which may be
 * MMC_PEER_ALL. Returns 0 or a negative error.
 */
int mmc_stream_send_control(struct mmc_stream *stream, uint32_t peer,
			    const struct mmc_letter *letters, uint32_t count);

/*
 * Carries out an action SEND or PARITY: sends each chunk, or row of parity, of the run in
 * a datagram. Returns 0 or a negative error.
 */
int mmc_request_send(struct mmc_request *request,
		     const struct mmc_action *action);

#endif
