/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/blocks.h"

#include <string.h>

#include "core/operation/carried.h"
#include "support/bits.h"

/* Where a part begins in its message. */
#define PART_OFFSET (MMC_HEADER_BYTES + MMC_MESSAGE_BYTES + MMC_PART_HEAD_BYTES)

/* Adjacent bytes of a single block, among those of a part. */
struct span {
	uint32_t chunk;	     /* the first one of the block */
	uint64_t from_bytes; /* where the span begins in the block */
	uint32_t nbytes;
};

/* Returns the span that begins at byte `at` of the blocks of `run`, and its end. */
static struct span span_at(const struct mmc_layout *layout, struct mmc_run run,
			   uint32_t at, uint32_t end)
{
	uint32_t block_bytes = (uint32_t)layout->block_bytes;
	uint32_t number = (run.first + at / block_bytes) % layout->nsenders;
	const struct mmc_block block =
		mmc_layout_block(layout, mmc_layout_sender(layout, number));

	return (struct span){
		.chunk = block.first,
		.from_bytes = at % block_bytes,
		.nbytes = mmc_min_u32(end - at, block_bytes - at % block_bytes),
	};
}

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
	       (mmc_layout_offset(mmc_op_layout(request->op), chunk) -
		mmc_op_copied(request->op).offset_bytes);
}

/* Writes the bytes from `first` to `end` of the blocks of `run` to `bytes`. */
static void write_part(const struct mmc_request *request, struct mmc_run run,
		       uint32_t first, uint32_t end, uint8_t *bytes)
{
	struct span span;

	for (uint32_t at = first; at < end; at += span.nbytes) {
		span = span_at(mmc_op_layout(request->op), run, at, end);
		memcpy(bytes + (at - first),
		       block_at(request, span.chunk) + span.from_bytes,
		       span.nbytes);
	}
}

/* Writes the header that a message of `nbytes` has, of which `first` was the first. */
static void write_header(const struct mmc_team *team, uint8_t *message,
			 uint32_t nbytes, const struct mmc_letter *first)
{
	const struct mmc_header header = mmc_header_peek(first->bytes);
	enum mmc_checksum checksum = team->options.checksum;
	uint32_t crc_bytes = checksum == MMC_CHECKSUM_FULL ? MMC_CRC_BYTES : 0;

	mmc_header_encode(message, &header, nbytes + crc_bytes, checksum);
}

int mmc_request_send_blocks(const struct mmc_request *request,
			    const struct mmc_action *action,
			    const struct mmc_letter *first)
{
	struct mmc_stream *stream = request->stream;
	uint32_t all_bytes = action->run.count *
			     (uint32_t)mmc_op_layout(request->op)->block_bytes;
	uint8_t bytes[MMC_PARTS_MAX][MMC_MESSAGE_BYTES_MAX];
	struct mmc_letter letters[MMC_PARTS_MAX];
	uint32_t count = 0;

	for (uint32_t at = action->first; at < all_bytes;
	     at += MMC_PART_BYTES) {
		uint32_t nbytes = mmc_min_u32(all_bytes - at, MMC_PART_BYTES);
		uint8_t *message = bytes[count];

		memcpy(message, first->bytes, first->nbytes);
		mmc_message_set_part(message + MMC_HEADER_BYTES, at, nbytes);
		write_part(request, action->run, at, at + nbytes,
			   message + PART_OFFSET);
		write_header(stream->team, message, PART_OFFSET + nbytes,
			     first);
		letters[count++] = (struct mmc_letter){
			.bytes = message,
			.nbytes = PART_OFFSET + nbytes,
		};
	}
	return mmc_stream_send_control(stream, action->peer, letters, count);
}

bool mmc_request_receive_part(struct mmc_request *request, uint32_t source,
			      struct mmc_part part, uint32_t nbytes,
			      uint64_t now_ns)
{
	uint32_t end = part.first + nbytes;
	struct mmc_run run;
	struct span span;

	switch (mmc_op_on_part(request->op, source, part.first, nbytes, &run)) {
	case MMC_VERDICT_FOREIGN:
		mmc_count(&request->stream->counters,
			  MMC_COUNT_RX_FOREIGN_DATAGRAMS, 1);
		return false;
	case MMC_VERDICT_DUPLICATE:
		return true;
	case MMC_VERDICT_PLACE:
		break;
	}
	for (uint32_t at = part.first; at < end; at += span.nbytes) {
		span = span_at(mmc_op_layout(request->op), run, at, end);
		memcpy(mmc_request_address(request, span.chunk) +
			       span.from_bytes,
		       part.bytes + (at - part.first), span.nbytes);
	}
	mmc_op_on_carried(request->op, source, part.first, now_ns);
	return true;
}

bool mmc_stream_receive_part(struct mmc_stream *stream, uint32_t source,
			     uint32_t epoch, const struct mmc_message *message,
			     uint64_t now_ns)
{
	struct mmc_op *op = mmc_epochs_find(&stream->epochs, epoch);
	const struct mmc_parked early = {
		.epoch = epoch,
		.source = source,
		.index = MMC_INDEX_CONTROL | MMC_MESSAGE_BLOCKS,
		.first = message->part.first,
		.nbytes = message->nitems,
	};

	if (op != NULL)
		return mmc_request_receive_part(mmc_stream_request(stream, op),
						source, message->part,
						message->nitems, now_ns);
	if (mmc_epochs_is_next(&stream->epochs, epoch) &&
	    mmc_parking_keep(&stream->parked_parts, &early,
			     message->part.bytes) == MMC_PARKING_FULL)
		mmc_count(&stream->counters, MMC_COUNT_RX_UNPARKED_DATAGRAMS,
			  1);
	return true;
}
