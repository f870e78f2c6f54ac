/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements mpimcast/request.h. */
#include "engine/request.h"

#include "engine/breakdown.h"
#include "engine/placement.h"
#include "engine/progress.h"
#include "engine/remote/requests.h"
#include "engine/spares.h"
#include "engine/threads/callers.h"
#include "engine/threads/responder.h"
#include "support/assert.h"
#include "support/bits.h"

/*
 * Returns what mmc_request_wait() is to return for a request in its current state, and
 * sets the thread's last error if that is an error.
 */
static int outcome(struct mmc_request *request)
{
	if (!mmc_request_is_complete(request))
		return MMC_EAGAIN;
	if (request->failure.error != 0)
		mmc_team_set_last_error(request->stream->team);
	return request->failure.error;
}

/* Leaves the engine, for a moment only if the caller has to come back for `request`. */
static void leave(struct mmc_engine *engine, const struct mmc_request *request)
{
	if (mmc_request_is_complete(request))
		mmc_engine_leave(engine);
	else
		mmc_engine_pause(engine);
}

/* Takes a request from the user. The caller holds the progress lock. */
static void release(struct mmc_request *request)
{
	request->held = false;
	mmc_request_recycle(request);
}

int mmc_start(struct mmc_stream *stream, const struct mmc_operation *operation,
	      uint64_t slice_ns, struct mmc_request **request)
{
	struct mmc_engine *engine = stream->team->engine;
	int rv;

	*request = NULL;
	rv = mmc_engine_enter(engine);
	if (rv != 0)
		return rv;
	/* Nobody else makes progress for a caller who does not come back. */
	if (operation->notifies != 0)
		rv = mmc_responder_start(engine);
	if (rv == 0)
		rv = mmc_request_start(stream, operation, request);
	if (rv == 0) {
		if (slice_ns > 0)
			mmc_engine_wait_for(engine, *request, slice_ns);
		rv = outcome(*request);
		if (rv == 0) {
			release(*request);
			*request = NULL;
		}
	}
	if (rv == MMC_EAGAIN && slice_ns > 0)
		mmc_engine_pause(engine);
	else
		mmc_engine_leave(engine);
	return rv;
}

int mmc_request_wait(struct mmc_request *request, uint64_t slice_ns)
{
	struct mmc_engine *engine = request->stream->team->engine;
	int rv;

	if (slice_ns == 0 || mmc_request_is_complete(request) ||
	    mmc_engine_follow(engine, request, slice_ns))
		return outcome(request);
	rv = mmc_engine_enter(engine);
	if (rv != 0)
		return rv;
	slice_ns = mmc_request_slice_ns(request, slice_ns,
					mmc_team_now_ns(request->stream->team));
	mmc_engine_wait_for(engine, request, slice_ns);
	leave(engine, request);
	return outcome(request);
}

void mmc_request_ready(struct mmc_request *request)
{
	struct mmc_engine *engine = request->stream->team->engine;

	if (mmc_engine_enter(engine) != 0)
		return;
	mmc_request_set_ready(request);
	mmc_engine_leave(engine);
}

void mmc_request_cancel(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_engine *engine = stream->team->engine;
	struct mmc_poison poison = {
		.error = MMC_ECANCELED,
		.culprit = stream->team->options.rank,
	};

	if (mmc_engine_enter(engine) != 0)
		return;
	if (mmc_team_is_remote(stream->team)) {
		if (!mmc_request_is_complete(request))
			mmc_remote_cancel(request);
	} else if (!mmc_request_is_complete(request)) {
		poison.epoch = request->op != NULL
				       ? mmc_op_epoch(request->op)
				       : mmc_epochs_last(&stream->epochs);
		mmc_epochs_poison(&stream->epochs, poison, true);
		stream->needs_poll = true;
		mmc_request_end_placement(request, false);
		/*
		 * The operation fails when no placement is under way any more. The
		 * driver may take several rounds to report those it has held back.
		 */
		while (mmc_engine_progress(engine) && !engine->stepped &&
		       !mmc_request_is_complete(request))
			;
	}
	if (!engine->stepped)
		MMC_ASSERT(mmc_request_is_complete(request));
	mmc_engine_leave(engine);
}

void mmc_request_free(struct mmc_request *request)
{
	struct mmc_engine *engine;

	if (request == NULL)
		return;
	engine = request->stream->team->engine;
	if (mmc_engine_enter(engine) != 0)
		return;
	release(request);
	mmc_engine_leave(engine);
}

void mmc_request_failure(struct mmc_request *request,
			 struct mmc_failure *failure)
{
	*failure = request->failure;
}

void mmc_request_waiting(struct mmc_request *request,
			 struct mmc_waiting *waiting)
{
	struct mmc_engine *engine = request->stream->team->engine;
	const struct mmc_op *op;

	*waiting = (struct mmc_waiting){
		.rank = UINT32_MAX,
		.unentered = UINT32_MAX,
	};
	if (mmc_engine_enter(engine) != 0)
		return;
	op = request->op;
	waiting->waited_ns =
		mmc_team_now_ns(request->stream->team) - request->start_ns;
	if (mmc_team_is_remote(request->stream->team)) {
		uint64_t waited_ns = waiting->waited_ns;

		mmc_remote_waiting(request, waiting);
		waiting->waited_ns = waited_ns;
	}
	if (op != NULL && !mmc_request_is_complete(request)) {
		waiting->entered = mmc_op_has_begun(op);
		waiting->epoch = mmc_op_epoch(op);
		waiting->rank = mmc_op_awaited(op);
		waiting->unentered = mmc_op_unentered(op);
		waiting->silent = mmc_op_awaits_late(op);
		waiting->missing_chunks = mmc_op_missing_chunks(op);
	}
	mmc_engine_leave(engine);
}
