/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/parity.h"

#include <string.h>

#include "code/code.h"
#include "engine/datagram.h"

size_t mmc_parity_bytes(const struct mmc_op_config *config)
{
	size_t nslots = mmc_op_slots(config);

	return (nslots + MMC_PARITY_ROWS_MAX) * config->chunk_bytes;
}

/* Returns where the payload of a slot lies. */
static uint8_t *slot_at(const struct mmc_request *request, uint32_t slot)
{
	return request->parity +
	       (size_t)slot * request->stream->team->options.chunk_bytes;
}

const uint8_t *mmc_request_encode(struct mmc_request *request,
				  const struct mmc_action *action,
				  uint32_t *row_bytes)
{
	const struct mmc_layout *layout = mmc_op_layout(request->op);
	const struct mmc_group group =
		mmc_op_own_group(request->op, action->first);
	uint32_t last = group.first + (group.ndata - 1) * group.stride;
	uint8_t *begin = slot_at(request, mmc_mender_slots(layout->nchunks));
	uint8_t *data[MMC_GROUP_CHUNKS_MAX];
	uint8_t *parity[MMC_PARITY_ROWS_MAX];
	const struct mmc_code_group chunks = {
		.data = data,
		.ndata = group.ndata,
		.chunk_bytes = mmc_layout_payload(layout, group.first),
		.last_bytes = mmc_layout_payload(layout, last),
	};
	const struct mmc_code_rows rows = {
		.first = action->run.first,
		.count = action->run.count,
		.parity = parity,
	};

	for (uint32_t i = 0; i < group.ndata; i++)
		data[i] = (uint8_t *)mmc_request_held(
			request, group.first + i * group.stride);
	for (uint32_t i = 0; i < rows.count; i++)
		parity[i] = begin + i * chunks.chunk_bytes;
	mmc_code_encode(mmc_codec_choose(), &chunks, &rows);
	*row_bytes = (uint32_t)chunks.chunk_bytes;
	return begin;
}

void mmc_request_mend(struct mmc_request *request,
		      const struct mmc_action *action)
{
	const struct mmc_layout *layout = mmc_op_layout(request->op);
	const uint8_t *parity[MMC_GROUP_CHUNKS_MAX];
	uint8_t *data[MMC_GROUP_CHUNKS_MAX];
	struct mmc_mend mend;
	struct mmc_code_group chunks = { .data = data };
	struct mmc_code_loss loss = { .parity = parity };

	mmc_op_describe_mend(request->op, action, &mend);
	for (uint32_t i = 0; i < mend.ndata; i++)
		data[i] = mmc_request_address(request,
					      mend.first + i * mend.stride);
	for (uint32_t i = 0; i < mend.nlost; i++)
		parity[i] = slot_at(request, mend.slots[i]);
	chunks.ndata = mend.ndata;
	chunks.chunk_bytes = mmc_layout_payload(layout, mend.first);
	chunks.last_bytes = mend.last_bytes;
	loss.columns = mend.columns;
	loss.rows = mend.rows;
	loss.count = mend.nlost;
	mmc_code_mend(mmc_codec_choose(), &chunks, &loss);
	mmc_op_on_mended(request->op, action);
}

bool mmc_stream_receive_parity(struct mmc_stream *stream,
			       const struct mmc_header *header,
			       const struct mmc_event *event, uint64_t now_ns)
{
	uint32_t head_bytes = mmc_team_head_bytes(stream->team);
	uint32_t nbytes = event->nbytes - head_bytes;
	struct mmc_op *op = mmc_epochs_find(&stream->epochs, header->epoch);
	int slot;

	if (op == NULL) {
		mmc_count(&stream->counters, MMC_COUNT_RX_UNPARKED_DATAGRAMS,
			  1);
		return !mmc_epoch_after(header->epoch,
					mmc_epochs_last(&stream->epochs)) ||
		       mmc_epochs_is_next(&stream->epochs, header->epoch);
	}
	slot = mmc_op_on_parity(op, event->source, header->index, nbytes,
				now_ns);
	if (slot >= 0)
		memcpy(slot_at(mmc_stream_request(stream, op), (uint32_t)slot),
		       mmc_event_body(event, head_bytes), nbytes);
	return slot != MMC_UNKEPT_FOREIGN;
}
