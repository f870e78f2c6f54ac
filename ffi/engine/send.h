/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns actions of the core into datagrams. */
#ifndef MMC_ENGINE_SEND_H
#define MMC_ENGINE_SEND_H

#include "engine/state.h"

/* Sends an encoded control message to `peer`. Returns 0 or a negative error. */
int mmc_stream_send_control(struct mmc_stream *stream, uint32_t peer,
			    const uint8_t *bytes, uint32_t nbytes);

/* Sends the chunks of a SEND action. Returns 0 or a negative error. */
int mmc_request_send(struct mmc_request *request,
		     const struct mmc_action *action);

#endif
