/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/completion.h"

#include <string.h>

#include "core/operation/learn.h"
#include "engine/advert.h"
#include "engine/landed.h"
#include "engine/operation.h"
#include "engine/parity.h"
#include "engine/placement.h"
#include "engine/spares.h"
#include "engine/threads/notify.h"
#include "engine/tracing.h"

void mmc_request_finish(struct mmc_request *request)
{
	if (request->stream->tracing != NULL)
		mmc_tracing_finish(request);
	__atomic_store_n(&request->complete, true, __ATOMIC_RELEASE);
	request->base = NULL;
	request->stream->team->engine->nfinished++;
	if (request->notifies)
		mmc_engine_notify(request->stream->team->engine);
	request->notifies = false;
	if (mmc_request_tells_of_blocks(request))
		mmc_request_end_telling(request);
}

/* Ends all access to the result but the user's. */
static void end_access(struct mmc_request *request)
{
	mmc_request_end_placement(request, false);
	mmc_request_revoke(request);
	mmc_request_forget_fetches(request);
	mmc_request_forget_tasks(request);
}

/*
 * Copies what others may still ask for: a block, or those of all ranks, which are equal
 * and need not be adjacent in the user's memory.
 */
static void take_copy(struct mmc_request *request)
{
	const struct mmc_block copied = mmc_op_copied(request->op);
	const struct mmc_layout *layout = mmc_op_layout(request->op);
	bool scattered = request->operation.offsets_bytes != NULL &&
			 copied.nbytes > mmc_op_own_block(request->op)->nbytes;
	uint32_t nparts = scattered ? layout->nsenders : 1;
	uint64_t part_bytes = copied.nbytes / nparts;
	struct mmc_copy *copy;

	if (copied.nbytes == 0)
		return;
	copy = mmc_copies_take(&request->stream->copies);
	for (uint32_t i = 0; i < nparts; i++)
		memcpy(copy->bytes + i * part_bytes,
		       mmc_request_address(request,
					   copied.first +
						   i * layout->block_chunks),
		       part_bytes);
	request->copy = copy;
}

void mmc_request_complete(struct mmc_request *request, bool retain)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_run_delay delay;

	if (mmc_run_delay_since(&request->run_delay, &delay))
		mmc_op_learn_delay(request->op, delay.delay_ns, delay.at_ns);
	stream->team->path = *mmc_epochs_path(&stream->epochs);
	end_access(request);
	if (retain)
		take_copy(request);
	mmc_request_finish(request);
}

void mmc_request_fail_poisoned(struct mmc_request *request)
{
	const struct mmc_poison poison =
		mmc_epochs_first_failure(&request->stream->epochs);

	request->failure = (struct mmc_failure){
		.error = -MMC_EPOISONED,
		.epoch = poison.epoch,
		.culprit = poison.culprit,
	};
	mmc_request_finish(request);
}

void mmc_request_fail(struct mmc_request *request)
{
	const struct mmc_op *op = request->op;

	request->failure = (struct mmc_failure){
		.error = -(int)mmc_op_error(op),
		.epoch = mmc_op_epoch(op),
		.culprit = mmc_op_culprit(op),
		.missing_chunks = mmc_op_missing_chunks(op),
	};
	mmc_operation_describe_mismatch(mmc_op_terms(op), &request->failure);
	end_access(request);
	mmc_request_finish(request);
}

void mmc_request_close(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	uint32_t slot = mmc_epochs_slot(mmc_op_epoch(request->op));

	stream->requests[slot] = NULL;
	request->op = NULL;
	mmc_copies_give(&stream->copies, request->copy);
	request->copy = NULL;
	mmc_request_recycle(request);
}
