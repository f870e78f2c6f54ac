/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/wire.h"

#include "core/plan/grouping.h"

/* The epoch of a stream's first operation. */
enum { FIRST_EPOCH = 1 };

static bool find_stream(struct mmc_wire *wire,
			const struct mmc_monitor *monitor)
{
	for (uint32_t i = 0; i < monitor->nstreams; i++) {
		if (monitor->channels[i] == wire->header.channel) {
			wire->stream = i;
			return true;
		}
	}
	return false;
}

const char *mmc_wire_read(struct mmc_wire *wire,
			  const struct mmc_monitor *monitor)
{
	const struct mmc_frame *frame = wire->frame;

	if (frame->nbytes < monitor->network->options.head_bytes)
		return "it is too short";
	if (mmc_header_decode(&wire->header, frame->bytes,
			      frame->nbytes - monitor->seal_bytes,
			      monitor->checksum) < 0)
		return "the header cannot be decoded";
	if (!find_stream(wire, monitor))
		return "the channel is unknown";
	wire->index = wire->header.epoch - FIRST_EPOCH;
	if (wire->index >= monitor->nops)
		return "the epoch was never started";
	wire->body = frame->bytes + monitor->network->options.head_bytes;
	wire->body_bytes = frame->nbytes - monitor->network->options.head_bytes;
	wire->control = frame->traffic == MMC_TRAFFIC_CONTROL;
	if (wire->control &&
	    mmc_message_decode(&wire->message,
			       wire->header.index & MMC_INDEX_MASK, wire->body,
			       wire->body_bytes) < 0)
		return "the message cannot be decoded";
	return NULL;
}

const char *mmc_wire_parity_flaw(const struct mmc_wire *wire,
				 const struct mmc_monitor *monitor,
				 const struct mmc_layout *layout)
{
	const struct mmc_block block =
		mmc_layout_block(layout, wire->frame->source);
	uint32_t index = wire->header.index;
	uint32_t row = index & MMC_INDEX_ROW_MASK;
	uint32_t group = (index & (MMC_INDEX_ON_REQUEST - 1)) >>
			 MMC_INDEX_GROUP_SHIFT;

	if (monitor->code_data == 0)
		return "parity although there is no code";
	if (wire->frame->peer != MMC_PEER_ALL)
		return "parity that is not multicast";
	if ((uint64_t)group * monitor->code_data >= block.nchunks)
		return "parity of no group";
	if (!(index & MMC_INDEX_ON_REQUEST) && row >= monitor->code_parity)
		return "parity of a row that was not asked for";
	if (row + monitor->code_data >= MMC_GROUP_CHUNKS_MAX)
		return "parity of no row";
	if (wire->body_bytes == 0 || wire->body_bytes > layout->chunk_bytes)
		return "parity of a wrong length";
	return NULL;
}
