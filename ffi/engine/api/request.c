/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements mpimcast/request.h, and mpimcast/partial.h for its requests. */
#include "engine/request.h"

#include "engine/breakdown.h"
#include "engine/landed.h"
#include "engine/operation.h"
#include "engine/parity.h"
#include "engine/placement.h"
#include "engine/progress.h"
#include "engine/remote/requests.h"
#include "engine/spares.h"
#include "engine/threads/callers.h"
#include "engine/threads/responder.h"
#include "support/assert.h"
#include "support/bits.h"
#include "support/error.h"
#include "support/present.h"
#include "support/range.h"

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
	if (rv == 0 && mmc_stream_has_coder(stream))
		rv = mmc_coder_start(engine);
	if (rv == 0)
		rv = mmc_request_start(stream, operation, request);
	if (rv == 0) {
		if (slice_ns > 0)
			mmc_engine_wait_for(
				engine,
				&(struct mmc_goal){ .request = *request },
				slice_ns);
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

/* Waits until `goal` is reached, but at most a slice. Returns 0 or a negative error. */
static int wait_for(const struct mmc_goal *goal, uint64_t slice_ns)
{
	const struct mmc_request *request = goal->request;
	struct mmc_engine *engine = request->stream->team->engine;
	int rv;

	if (slice_ns == 0 || mmc_goal_is_reached(goal) ||
	    mmc_engine_follow(engine, goal, slice_ns))
		return 0;
	rv = mmc_engine_enter(engine);
	if (rv != 0)
		return rv;
	slice_ns = mmc_request_slice_ns(request, slice_ns,
					mmc_team_now_ns(request->stream->team));
	mmc_engine_wait_for(engine, goal, slice_ns);
	leave(engine, request);
	return 0;
}

int mmc_request_wait(struct mmc_request *request, uint64_t slice_ns)
{
	int rv = wait_for(&(struct mmc_goal){ .request = request }, slice_ns);

	return rv == 0 ? outcome(request) : rv;
}

/* ---- partial completion -------------------------------------------------- */

/* What a caller waits for who wants a range, or the next block that lands. */
struct part {
	struct mmc_goal goal;
	struct mmc_request *request;
	const struct mmc_range *range; /* NULL: a block */
	uint32_t index;
	uint32_t rank;
};

/* Returns what a part's function of partial.h is to return in its current state. */
static int look(struct part *part)
{
	if (part->range != NULL)
		return mmc_request_look_range(part->request, part->range);
	return mmc_request_look_block(part->request, part->index, &part->rank);
}

static bool has_come(const struct mmc_goal *goal)
{
	struct part part = *(const struct part *)goal;

	return look(&part) != MMC_EAGAIN;
}

/* Has the runner of a request, if there is one, show from now on what is present. */
static void show(struct mmc_request *request)
{
	struct mmc_engine *engine = request->stream->team->engine;

	if (!mmc_team_is_remote(request->stream->team) ||
	    !request->operation.partial || mmc_remote_is_shown(request) ||
	    mmc_engine_enter(engine) != 0)
		return;
	mmc_remote_show(request);
	leave(engine, request);
}

static int wait_for_part(struct part *part, uint64_t slice_ns)
{
	struct mmc_request *request = part->request;
	int rv;

	part->goal.request = request;
	part->goal.has_come = has_come;
	if (look(part) == MMC_EAGAIN)
		show(request);
	rv = wait_for(&part->goal, slice_ns);
	if (rv == 0)
		rv = look(part);
	if (mmc_request_is_complete(request) && request->failure.error != 0)
		mmc_team_set_last_error(request->stream->team);
	return rv;
}

int mmc_request_wait_range(struct mmc_request *request,
			   const struct mmc_range *range, uint64_t slice_ns)
{
	const struct mmc_operation *operation = &request->operation;
	uint64_t nbytes = 0;
	int rv;

	if (range->rank < request->stream->team->options.nranks)
		nbytes = mmc_operation_block(operation, range->rank);
	rv = mmc_range_check(range, nbytes);
	if (rv != 0)
		return rv;
	return wait_for_part(
		&(struct part){ .request = request, .range = range }, slice_ns);
}

int mmc_request_wait_block(struct mmc_request *request, uint32_t index,
			   uint64_t slice_ns, uint32_t *rank)
{
	struct part part = { .request = request, .index = index };
	int rv;

	if (index >= mmc_request_nblocks(request)) {
		mmc_error_set("there is no block number %u", index);
		return -MMC_EINVAL;
	}
	rv = wait_for_part(&part, slice_ns);
	if (rv == 0)
		*rank = part.rank;
	return rv;
}

void mmc_request_tell_blocks(struct mmc_request *request)
{
	struct mmc_engine *engine = request->stream->team->engine;

	if (mmc_engine_enter(engine) != 0)
		return;
	if (mmc_team_is_remote(request->stream->team))
		mmc_remote_show(request);
	mmc_request_begin_telling(request);
	mmc_request_tell_landed(request);
	mmc_engine_leave(engine);
}

int mmc_request_present(struct mmc_request *request,
			struct mmc_present **present)
{
	struct mmc_engine *engine = request->stream->team->engine;
	const struct mmc_landing *landing;
	int rv = mmc_engine_enter(engine);

	*present = NULL;
	if (rv != 0)
		return rv;
	if (mmc_team_is_remote(request->stream->team))
		mmc_remote_show(request);
	landing = request->landing;
	if (landing == NULL)
		rv = MMC_EAGAIN;
	else if (request->present == NULL)
		request->present = mmc_present_new(request->memory,
						   landing->present->words,
						   landing->present->nbits);
	if (rv == 0 && request->present == NULL)
		rv = -MMC_ENOMEM;
	if (rv == 0)
		*present = mmc_present_hold(request->present);
	mmc_engine_leave(engine);
	return rv;
}

/* ---- the rest of a request's life ---------------------------------------- */

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
		 * driver may take several rounds to report those it has held back, and
		 * the coder may be mending.
		 */
		while ((mmc_engine_progress(engine) ||
			mmc_engine_await_coder(engine)) &&
		       !engine->stepped && !mmc_request_is_complete(request))
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
