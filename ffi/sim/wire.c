/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/wire.h"

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
