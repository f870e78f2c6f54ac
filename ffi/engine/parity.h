/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parity of a request: it is computed before it is sent, and what others' parity can
 * mend is mended. A request has slots behind its other memory, in which parity lies: first
 * those of the core's mender, then those of the rows that are being sent.
 */
#ifndef MMC_ENGINE_PARITY_H
#define MMC_ENGINE_PARITY_H

#include "core/operation/parity.h"
#include "engine/state.h"

/*
 * Returns whether a stream's operations may be coded. Where a device puts payloads in their
 * places by itself, parity would take chunks' places.
 */
static inline bool mmc_stream_may_code(const struct mmc_stream *stream)
{
#ifdef MMC_BARE
	(void)stream;
	return false;
#else
	return stream->options.code_data > 0 &&
	       !stream->team->options.zero_copy &&
	       !stream->team->endpoint->places_by_itself;
#endif
}

/* The rest is for streams whose operations may be coded. */

/* Returns the bytes of the slots that an operation needs. */
size_t mmc_parity_bytes(const struct mmc_op_config *config);

/*
 * Computes the rows of an action PARITY. Returns where they lie one after the other, until
 * the next call, and writes to `row_bytes` how long each is.
 */
const uint8_t *mmc_request_encode(struct mmc_request *request,
				  const struct mmc_action *action,
				  uint32_t *row_bytes);

/* Mends a group, as an action MEND asks for. */
void mmc_request_mend(struct mmc_request *request,
		      const struct mmc_action *action);

/*
 * Takes in a parity chunk, whose header was checked. Returns false if it is foreign. It is
 * not kept for operations that have not begun here.
 */
bool mmc_stream_receive_parity(struct mmc_stream *stream,
			       const struct mmc_header *header,
			       const struct mmc_event *event, uint64_t now_ns);

#endif
