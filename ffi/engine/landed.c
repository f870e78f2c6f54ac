/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/landed.h"

#include "engine/operation.h"
#include "engine/threads/notify.h"
#include "support/range.h"

/* Returns which blocks have landed; NULL until the operation begins. */
static const struct mmc_landing *landing_of(const struct mmc_request *request)
{
	return __atomic_load_n(&request->landing, __ATOMIC_ACQUIRE);
}

int mmc_request_look_range(struct mmc_request *request,
			   const struct mmc_range *range)
{
	const struct mmc_landing *landing = landing_of(request);

	if (mmc_request_is_complete(request))
		return request->failure.error;
	if (landing != NULL &&
	    mmc_landing_has(landing, range->rank, range->first_bytes,
			    range->nbytes))
		return 0;
	return MMC_EAGAIN;
}

uint32_t mmc_request_nblocks(const struct mmc_request *request)
{
	return request->operation.kind == MMC_BCAST
		       ? 1
		       : request->stream->team->options.nranks;
}

/* Returns whose block has number `index` where nobody has noted the order. */
static uint32_t by_rank(const struct mmc_request *request, uint32_t index)
{
	uint32_t own = request->stream->team->options.rank;

	if (request->operation.kind == MMC_BCAST)
		return request->operation.root;
	return mmc_landed_together(own, index);
}

int mmc_request_look_block(struct mmc_request *request, uint32_t index,
			   uint32_t *rank)
{
	bool complete = mmc_request_is_complete(request);
	const struct mmc_landing *landing = landing_of(request);

	if (complete && request->failure.error != 0)
		return request->failure.error;
	if (landing != NULL && index < mmc_landing_count(landing))
		*rank = mmc_landing_rank(landing, index);
	else if (complete)
		*rank = by_rank(request, index);
	else
		return MMC_EAGAIN;
	return 0;
}

void mmc_request_begin_telling(struct mmc_request *request)
{
	if (request->tells || mmc_request_is_complete(request))
		return;
	request->tells = true;
	request->ntold = 0;
	request->stream->team->engine->ntelling++;
}

void mmc_request_end_telling(struct mmc_request *request)
{
	request->stream->team->engine->ntelling--;
	request->tells = false;
}

void mmc_request_tell_landed(struct mmc_request *request)
{
	uint32_t nlanded;

	if (!request->tells || request->landing == NULL)
		return;
	nlanded = mmc_landing_count(request->landing);
	if (nlanded != request->ntold)
		mmc_engine_tell(request->stream->team->engine);
	request->ntold = nlanded;
}

void mmc_stream_tell_blocks(struct mmc_stream *stream)
{
	for (uint32_t i = 0; i < MMC_EPOCHS_OPEN_MAX; i++)
		if (stream->requests[i] != NULL)
			mmc_request_tell_landed(stream->requests[i]);
}
