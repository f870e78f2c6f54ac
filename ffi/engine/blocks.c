/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/blocks.h"

#include <string.h>

#include "core/operation/carried.h"

/*
 * Returns where the bytes of a block are: in the user's memory, or in the copy of all
 * blocks once that has been taken.
 */
static const uint8_t *block_at(const struct mmc_request *request,
			       uint32_t chunk)
{
	if (request->copy == NULL)
		return mmc_request_address(request, chunk);
	return request->copy->bytes +
	       mmc_layout_offset(mmc_op_layout(request->op), chunk);
}

void mmc_request_write_blocks(const struct mmc_request *request,
			      struct mmc_run run, uint8_t *bytes)
{
	const struct mmc_layout *layout = mmc_op_layout(request->op);

	for (uint32_t i = 0; i < run.count; i++)
		memcpy(bytes + i * layout->block_bytes,
		       block_at(request, (run.first + i) % layout->nchunks),
		       layout->block_bytes);
}

bool mmc_request_receive_blocks(struct mmc_request *request, uint32_t source,
				const uint8_t *blocks, uint32_t nbytes,
				uint64_t now_ns)
{
	const struct mmc_layout *layout = mmc_op_layout(request->op);
	struct mmc_run run;

	switch (mmc_op_on_blocks(request->op, source, nbytes, &run)) {
	case MMC_VERDICT_FOREIGN:
		mmc_count(&request->stream->counters,
			  MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
		return false;
	case MMC_VERDICT_DUPLICATE:
		return true;
	case MMC_VERDICT_PLACE:
		break;
	}
	for (uint32_t i = 0; i < run.count; i++) {
		uint32_t chunk = (run.first + i) % layout->nchunks;

		if (mmc_op_take_block(request->op, chunk))
			memcpy(mmc_request_address(request, chunk),
			       blocks + i * layout->block_bytes,
			       layout->block_bytes);
	}
	mmc_op_on_carried(request->op, source, now_ns);
	return true;
}

bool mmc_stream_receive_blocks(struct mmc_stream *stream, uint32_t source,
			       uint32_t epoch,
			       const struct mmc_message *message,
			       uint64_t now_ns)
{
	struct mmc_op *op = mmc_epochs_find(&stream->epochs, epoch);
	const struct mmc_parked early = {
		.epoch = epoch,
		.source = source,
		.index = MMC_INDEX_CONTROL | MMC_MESSAGE_BLOCKS,
		.nbytes = message->nitems,
	};

	if (op != NULL)
		return mmc_request_receive_blocks(
			mmc_stream_request(stream, op), source, message->blocks,
			message->nitems, now_ns);
	if (mmc_epochs_is_next(&stream->epochs, epoch) &&
	    mmc_parking_keep(&stream->parking, &early, message->blocks) ==
		    MMC_PARKING_FULL)
		mmc_count(&stream->counters, MMC_COUNT_RX_UNPARKED_DATAGRAMS,
			  1);
	return true;
}
