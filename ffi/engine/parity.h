/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parity of a request: it is computed before it is sent, and what others' parity can
 * mend is mended. A request has slots behind its other memory, in which parity lies: first
 * those of the core's mender, then those of the rows that are being sent. With a coder there is
 * a stock in front of them.
 */
#ifndef MMC_ENGINE_PARITY_H
#define MMC_ENGINE_PARITY_H

#include "core/operation/parity.h"
#include "engine/state.h"
#include "engine/threads/coder.h"

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

/* Returns whether the coder computes for a stream. */
static inline bool mmc_stream_has_coder(const struct mmc_stream *stream)
{
	return mmc_stream_may_code(stream) && stream->options.coder != 0 &&
	       !stream->team->engine->stepped;
}

/* ---- the coder's tasks --------------------------------------------------- */

/* As mmc_engine_take_tasks(), of an engine that has a coder. */
bool mmc_engine_end_tasks(struct mmc_engine *engine);

/*
 * Takes back the tasks that have ended, and tells the core which groups are mended. Returns
 * whether there was any such group: then more may be due at once.
 */
static inline bool mmc_engine_take_tasks(struct mmc_engine *engine)
{
	return mmc_engine_coder(engine) != NULL && mmc_engine_end_tasks(engine);
}

/*
 * Has the coder wake who is about to sleep: the leader, or else the responder. Returns
 * whether a task has ended already.
 */
static inline bool mmc_engine_arm_coder(struct mmc_engine *engine, bool leader)
{
	return mmc_engine_coder(engine) != NULL &&
	       mmc_coder_arm(mmc_engine_coder(engine),
			     leader ? MMC_CODER_LEADER : MMC_CODER_RESPONDER);
}

/* Waits until a task has ended. Returns false if there is none to wait for. */
static inline bool mmc_engine_await_coder(struct mmc_engine *engine)
{
	return mmc_engine_coder(engine) != NULL &&
	       mmc_coder_await(mmc_engine_coder(engine));
}

/* Ends all use of a request's memory by the coder. */
static inline void mmc_request_forget_tasks(struct mmc_request *request)
{
	struct mmc_coder *coder =
		mmc_engine_coder(request->stream->team->engine);

	if (coder != NULL)
		mmc_coder_forget(coder, request);
}

/* ---- for streams whose operations may be coded --------------------------- */

/* Returns the bytes of the slots, and of the stock, that an operation needs. */
size_t mmc_parity_bytes(const struct mmc_op_config *config);

/* Makes the slots, in `memory`, mmc_parity_bytes() long, and the stock if there is one. */
void mmc_request_init_parity(struct mmc_request *request, uint8_t *memory,
			     const struct mmc_op_config *config);

/*
 * Computes the rows of an action PARITY, unless the coder has done so. Returns where they
 * lie one after the other, until the next call or until the stock is filled, and writes to
 * `row_bytes` how long each is.
 */
const uint8_t *mmc_request_encode(struct mmc_request *request,
				  const struct mmc_action *action,
				  uint32_t *row_bytes);

/*
 * Has the coder compute the parity that is due next, as far as there is room in the stock,
 * which the request has.
 */
void mmc_request_fill_stock(struct mmc_request *request);

/* Mends a group, as an action MEND asks for, or has the coder do so. */
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
