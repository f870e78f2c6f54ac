/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements the operations of mpimcast/node.h, and mpimcast/partial.h for them. */
#include "node/request.h"

#include "node/failing.h"
#include "node/forward.h"
#include "node/landing.h"
#include "node/progress.h"
#include "node/wait.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/present.h"
#include "support/range.h"

static bool is_complete(const struct mmc_node_request *request)
{
	return atomic_load_explicit(&request->complete, memory_order_acquire);
}

/*
 * Returns what mmc_node_request_wait() is to return for a request in its current state,
 * and sets the thread's last error if that is an error.
 */
static int outcome(const struct mmc_node_request *request)
{
	if (!is_complete(request))
		return MMC_EAGAIN;
	if (request->failure.error != 0)
		mmc_node_set_last_error(request->stream);
	return request->failure.error;
}

/* Notes when the wait for a request begins, unless it has begun before. */
static void begin_wait(struct mmc_node_request *request, uint64_t now_ns)
{
	if (request->start_ns != 0)
		return;
	request->nread = request->stream->nread;
	request->nfilled = request->stream->nfilled;
	request->start_ns = now_ns;
	request->observed_ns = now_ns;
	request->looked_ns = now_ns;
}

/* What a caller waits for: a range or, if there is none, the block with a number. */
struct part {
	const struct mmc_range *range;
	uint32_t index;
	uint32_t rank; /* whose that block is */
};

/* Returns whose block has a number where nobody has noted the order. */
static uint32_t by_rank(const struct mmc_node_request *request, uint32_t index)
{
	uint32_t own = request->stream->options.rank;

	if (request->operation.kind == MMC_BCAST)
		return request->operation.root;
	return mmc_landed_together(own, index);
}

/* Returns what a part's function of partial.h is to return. Needs no lock. */
static int look(const struct mmc_node_request *request, struct part *part)
{
	const struct mmc_node_landing *landing = request->landing;
	const struct mmc_range *range = part->range;
	bool complete = is_complete(request);

	if (complete && request->failure.error != 0)
		return request->failure.error;
	if (range != NULL && landing != NULL &&
	    range->first_bytes + range->nbytes <=
		    mmc_node_landing_bytes(landing, range->rank))
		return 0;
	if (range == NULL && landing != NULL &&
	    mmc_node_landing_rank(landing, part->index, &part->rank))
		return 0;
	if (!complete)
		return MMC_EAGAIN;
	if (range == NULL)
		part->rank = by_rank(request, part->index);
	return 0;
}

/* Returns whether a caller need not wait any longer for a part or, if NULL, the end. */
static bool has_come(const struct mmc_node_request *request, struct part *part)
{
	return part != NULL ? look(request, part) != MMC_EAGAIN
			    : is_complete(request);
}

/*
 * Makes progress until the request is complete, or `part` has come if that is not NULL, or
 * `slice_ns` have passed. The caller holds the mutex.
 */
static void wait_for(struct mmc_node_request *request, struct part *part,
		     uint64_t slice_ns)
{
	struct mmc_node_stream *stream = request->stream;
	uint64_t now_ns;
	uint64_t until_ns;

	mmc_node_progress(stream);
	if (has_come(request, part))
		return;
	now_ns = mmc_clock_now_ns();
	until_ns = now_ns + slice_ns;
	begin_wait(request, now_ns);
	for (;;) {
		mmc_node_check_patience(request, now_ns);
		if (has_come(request, part) || now_ns >= until_ns)
			return;
		mmc_node_sleep(stream, until_ns - now_ns);
		mmc_node_progress(stream);
		if (has_come(request, part))
			return;
		now_ns = mmc_clock_now_ns();
	}
}

/*
 * Returns whether an operation before the next one has failed. Where the next one itself
 * has failed on another member already, it is started here, too, and fails alike.
 */
static bool is_poisoned(const struct mmc_node_stream *stream)
{
	return stream->failure.error != 0 &&
	       stream->failure.epoch <= stream->epoch;
}

int mmc_node_start(struct mmc_node_stream *stream,
		   const struct mmc_operation *operation, uint64_t slice_ns,
		   struct mmc_node_request **request)
{
	int rv;

	*request = NULL;
	if (mmc_node_is_forked(stream->node))
		return -MMC_EFORKED;
	pthread_mutex_lock(&stream->mutex);
	mmc_node_adopt_failure(stream);
	rv = is_poisoned(stream)
		     ? -MMC_EPOISONED
		     : mmc_node_request_put(stream, operation, request);
	if (rv == 0) {
		if (stream->failure.error != 0)
			mmc_node_request_take_first(stream);
		else if (slice_ns > 0)
			wait_for(*request, NULL, slice_ns);
		else
			mmc_node_progress(stream);
		rv = outcome(*request);
		if (rv == 0) {
			mmc_node_request_keep(*request);
			*request = NULL;
		}
	}
	pthread_mutex_unlock(&stream->mutex);
	return rv;
}

int mmc_node_allgather(struct mmc_node_stream *stream, const void *send,
		       void *recv, uint64_t block_bytes, uint64_t shared,
		       struct mmc_node_request **request)
{
	struct mmc_operation operation = {
		.kind = MMC_ALLGATHER,
		.block_bytes = block_bytes,
		.send = send,
		.recv = recv,
		.shared = shared,
	};

	return mmc_node_start(stream, &operation, stream->options.slice_ns,
			      request);
}

int mmc_node_bcast(struct mmc_node_stream *stream, void *data, uint64_t nbytes,
		   uint32_t root, uint64_t shared,
		   struct mmc_node_request **request)
{
	struct mmc_operation operation = {
		.kind = MMC_BCAST,
		.root = root,
		.block_bytes = nbytes,
		.recv = data,
		.shared = shared,
	};

	return mmc_node_start(stream, &operation, stream->options.slice_ns,
			      request);
}

int mmc_node_request_wait(struct mmc_node_request *request, uint64_t slice_ns)
{
	struct mmc_node_stream *stream = request->stream;

	if (is_complete(request))
		return outcome(request);
	if (mmc_node_is_forked(stream->node))
		return -MMC_EFORKED;
	pthread_mutex_lock(&stream->mutex);
	wait_for(request, NULL, slice_ns);
	pthread_mutex_unlock(&stream->mutex);
	return outcome(request);
}

/* ---- partial completion -------------------------------------------------- */

static int wait_for_part(struct mmc_node_request *request, struct part *part,
			 uint64_t slice_ns)
{
	struct mmc_node_stream *stream = request->stream;

	if (slice_ns > 0 && !has_come(request, part)) {
		if (mmc_node_is_forked(stream->node))
			return -MMC_EFORKED;
		pthread_mutex_lock(&stream->mutex);
		wait_for(request, part, slice_ns);
		pthread_mutex_unlock(&stream->mutex);
	}
	if (is_complete(request) && request->failure.error != 0)
		mmc_node_set_last_error(stream);
	return look(request, part);
}

int mmc_node_request_wait_range(struct mmc_node_request *request,
				const struct mmc_range *range,
				uint64_t slice_ns)
{
	uint64_t nbytes = 0;
	int rv;

	if (range->rank < request->stream->options.nranks &&
	    mmc_node_request_sends(request, range->rank))
		nbytes = mmc_node_request_bytes(request, range->rank);
	rv = mmc_range_check(range, nbytes);
	if (rv != 0)
		return rv;
	return wait_for_part(request, &(struct part){ .range = range },
			     slice_ns);
}

int mmc_node_request_wait_block(struct mmc_node_request *request,
				uint32_t index, uint64_t slice_ns,
				uint32_t *rank)
{
	struct part part = { .index = index };
	uint32_t nblocks = request->operation.kind == MMC_BCAST
				   ? 1
				   : request->stream->options.nranks;
	int rv;

	if (index >= nblocks) {
		mmc_error_set("there is no block number %u", index);
		return -MMC_EINVAL;
	}
	rv = wait_for_part(request, &part, slice_ns);
	if (rv == 0)
		*rank = part.rank;
	return rv;
}

void mmc_node_request_tell_blocks(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;

	if (mmc_node_is_forked(stream->node))
		return;
	pthread_mutex_lock(&stream->mutex);
	if (request->landing != NULL) {
		request->landing->tells = true;
		mmc_node_ring(stream->node, stream->member);
	}
	pthread_mutex_unlock(&stream->mutex);
}

int mmc_node_request_present(struct mmc_node_request *request,
			     struct mmc_present **present)
{
	*present = NULL;
	if (request->landing == NULL)
		return MMC_EAGAIN;
	*present = mmc_present_hold(request->landing->bits);
	return 0;
}

/* ---- the rest of a request's life ---------------------------------------- */

void mmc_node_request_ready(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;

	if (mmc_node_is_forked(stream->node))
		return;
	pthread_mutex_lock(&stream->mutex);
	request->operation.unready = 0;
	mmc_node_progress(stream);
	pthread_mutex_unlock(&stream->mutex);
}

void mmc_node_request_cancel(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream = request->stream;
	struct mmc_failure failure;

	if (mmc_node_is_forked(stream->node))
		return;
	pthread_mutex_lock(&stream->mutex);
	failure =
		mmc_node_failure(request, -MMC_ECANCELED, stream->options.rank);
	if (!is_complete(request))
		mmc_node_fail(stream, &failure);
	pthread_mutex_unlock(&stream->mutex);
}

void mmc_node_request_free(struct mmc_node_request *request)
{
	struct mmc_node_stream *stream;

	if (request == NULL || mmc_node_is_forked(request->stream->node))
		return;
	stream = request->stream;
	pthread_mutex_lock(&stream->mutex);
	mmc_node_request_keep(request);
	pthread_mutex_unlock(&stream->mutex);
}

void mmc_node_request_failure(struct mmc_node_request *request,
			      struct mmc_failure *failure)
{
	*failure = request->failure;
}

/* Says what the node leader waits for in other nodes, if that is what it waits for. */
static void ask_between(const struct mmc_node_stream *stream,
			struct mmc_waiting *waiting)
{
	struct mmc_request *oldest =
		stream->forwarded[stream->narrived % stream->options.nslots];
	uint64_t waited_ns = waiting->waited_ns;
	uint32_t epoch = waiting->epoch;

	if (!mmc_node_is_forwarding(stream) || oldest == NULL ||
	    stream->waits_between)
		return;
	mmc_request_waiting(oldest, waiting);
	waiting->waited_ns = waited_ns;
	waiting->epoch = epoch;
	if (waiting->rank < stream->map.nnodes)
		waiting->rank = mmc_node_peers(stream)[waiting->rank];
	if (waiting->unentered < stream->map.nnodes)
		waiting->unentered = mmc_node_peers(stream)[waiting->unentered];
}

void mmc_node_request_waiting(struct mmc_node_request *request,
			      struct mmc_waiting *waiting)
{
	struct mmc_node_stream *stream = request->stream;
	struct mmc_node_awaited whom;

	*waiting = (struct mmc_waiting){
		.rank = UINT32_MAX,
		.unentered = UINT32_MAX,
	};
	if (mmc_node_is_forked(stream->node))
		return;
	pthread_mutex_lock(&stream->mutex);
	if (!is_complete(request)) {
		whom = mmc_node_find_awaited(stream);
		begin_wait(request, mmc_clock_now_ns());
		waiting->waited_ns = mmc_clock_now_ns() - request->start_ns;
		waiting->epoch = request == stream->first ? request->epoch : 0;
		waiting->entered = whom.entered;
		if (!whom.moved)
			waiting->rank = whom.rank;
		if (!whom.moved && !whom.entered)
			waiting->unentered = whom.rank;
		waiting->missing_chunks = mmc_node_request_missing(request);
		if (mmc_node_leads(stream))
			ask_between(stream, waiting);
	}
	pthread_mutex_unlock(&stream->mutex);
}
