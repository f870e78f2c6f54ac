/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/parity.h"

#include <string.h>

#include "code/code.h"
#include "engine/datagram.h"
#include "engine/stock.h"
#include "support/bits.h"

/* Returns the bytes of a stock; 0: there is none, since no coder fills it. */
static size_t stock_bytes(const struct mmc_op_config *config)
{
	return config->mends_aside
		       ? mmc_stock_bytes((size_t)config->code_parity *
					 config->chunk_bytes)
		       : 0;
}

size_t mmc_parity_bytes(const struct mmc_op_config *config)
{
	size_t nslots = mmc_op_slots(config);

	return stock_bytes(config) +
	       (nslots + MMC_PARITY_ROWS_MAX) * config->chunk_bytes;
}

void mmc_request_init_parity(struct mmc_request *request, uint8_t *memory,
			     const struct mmc_op_config *config)
{
	request->parity = memory + stock_bytes(config);
	request->stock = NULL;
	if (config->mends_aside)
		request->stock =
			mmc_stock_init(memory, (size_t)config->code_parity *
						       config->chunk_bytes);
}

/* Returns where the payload of a slot lies. */
static uint8_t *slot_at(const struct mmc_request *request, uint32_t slot)
{
	return request->parity +
	       (size_t)slot * request->stream->team->options.chunk_bytes;
}

/* Returns the coder if it computes for a request's stream, or NULL. */
static struct mmc_coder *coder_of(const struct mmc_request *request)
{
	const struct mmc_stream *stream = request->stream;

	return mmc_stream_has_coder(stream)
		       ? mmc_engine_coder(stream->team->engine)
		       : NULL;
}

/* ---- encoding ------------------------------------------------------------ */

/* Describes a task that writes the rows which an action PARITY names to `parity`. */
static void describe_rows(struct mmc_request *request,
			  const struct mmc_action *action, uint8_t *parity,
			  struct mmc_coder_task *task)
{
	const struct mmc_layout *layout = mmc_op_layout(request->op);
	const struct mmc_group group =
		mmc_op_own_group(request->op, action->first);
	uint32_t last = group.first + (group.ndata - 1) * group.stride;

	task->request = request;
	task->action = *action;
	task->group = (struct mmc_code_group){
		.data = task->data,
		.ndata = group.ndata,
		.chunk_bytes = mmc_layout_payload(layout, group.first),
		.last_bytes = mmc_layout_payload(layout, last),
	};
	task->loss.count = 0;
	task->rows = (struct mmc_code_rows){
		.first = action->run.first,
		.count = action->run.count,
		.parity = task->parity,
	};
	for (uint32_t i = 0; i < group.ndata; i++)
		task->data[i] = (uint8_t *)mmc_request_held(
			request, group.first + i * group.stride);
	for (uint32_t i = 0; i < task->rows.count; i++)
		task->parity[i] = parity + i * task->group.chunk_bytes;
}

/* Returns the rows of an action PARITY if they are in stock, or NULL. */
static const uint8_t *take_stock(struct mmc_request *request,
				 const struct mmc_action *action)
{
	struct mmc_coder *coder = coder_of(request);
	const uint8_t *rows;

	if (request->stock == NULL || action->repair || coder == NULL)
		return NULL;
	rows = mmc_stock_take(request->stock, coder, action->first);
	mmc_count(&request->stream->counters, MMC_COUNT_CODER_ENCODED,
		  rows != NULL);
	return rows;
}

const uint8_t *mmc_request_encode(struct mmc_request *request,
				  const struct mmc_action *action,
				  uint32_t *row_bytes)
{
	const struct mmc_layout *layout = mmc_op_layout(request->op);
	const struct mmc_group group =
		mmc_op_own_group(request->op, action->first);
	uint8_t *begin = slot_at(request, mmc_mender_slots(layout->nchunks));
	const uint8_t *stocked = take_stock(request, action);
	struct mmc_coder_task task;

	*row_bytes = mmc_layout_payload(layout, group.first);
	if (stocked != NULL)
		return stocked;
	describe_rows(request, action, begin, &task);
	mmc_coder_compute(&task);
	return begin;
}

void mmc_request_fill_stock(struct mmc_request *request)
{
	const struct mmc_run unsent = mmc_op_unsent_parity(request->op);
	struct mmc_stock *stock = request->stock;
	struct mmc_coder *coder = coder_of(request);
	uint32_t end =
		unsent.first + mmc_min_u32(unsent.count, MMC_STOCK_GROUPS);
	uint32_t group = mmc_max_u32(stock->next, unsent.first);

	for (; group < end && coder != NULL; group++) {
		const struct mmc_action action = {
			.kind = MMC_ACTION_PARITY,
			.first = group,
			.run.count =
				mmc_op_own_group(request->op, group).nparity,
		};
		uint8_t *room = mmc_stock_room(stock, group);
		struct mmc_coder_task *task = mmc_coder_next(coder);

		if (room == NULL || task == NULL)
			return;
		describe_rows(request, &action, room, task);
		mmc_stock_order(stock, group, task);
		mmc_coder_submit(coder);
	}
}

/* ---- mending ------------------------------------------------------------- */

/* Describes a task that mends what an action MEND asks for. */
static void describe_mend(struct mmc_request *request,
			  const struct mmc_action *action,
			  struct mmc_coder_task *task)
{
	const struct mmc_layout *layout = mmc_op_layout(request->op);
	struct mmc_mend mend;

	mmc_op_describe_mend(request->op, action, &mend);
	for (uint32_t i = 0; i < mend.ndata; i++)
		task->data[i] = mmc_request_address(
			request, mend.first + i * mend.stride);
	for (uint32_t i = 0; i < mend.nlost; i++)
		task->parity[i] = slot_at(request, mend.slots[i]);
	memcpy(task->columns, mend.columns, mend.nlost);
	memcpy(task->row_numbers, mend.rows, mend.nlost);
	task->request = request;
	task->action = *action;
	task->group = (struct mmc_code_group){
		.data = task->data,
		.ndata = mend.ndata,
		.chunk_bytes = mmc_layout_payload(layout, mend.first),
		.last_bytes = mend.last_bytes,
	};
	task->loss = (struct mmc_code_loss){
		.columns = task->columns,
		.rows = task->row_numbers,
		.parity = (const uint8_t *const *)task->parity,
		.count = mend.nlost,
	};
}

void mmc_request_mend(struct mmc_request *request,
		      const struct mmc_action *action)
{
	struct mmc_coder *coder = coder_of(request);
	struct mmc_coder_task *task = coder != NULL ? mmc_coder_next(coder)
						    : NULL;
	struct mmc_coder_task own;

	describe_mend(request, action, task != NULL ? task : &own);
	if (task != NULL) {
		mmc_coder_submit(coder);
		return;
	}
	mmc_coder_compute(&own);
	mmc_op_on_mended(request->op, action);
}

bool mmc_engine_end_tasks(struct mmc_engine *engine)
{
	struct mmc_coder_task *task;
	bool mended = false;

	while ((task = mmc_coder_take(engine->coder)) != NULL) {
		struct mmc_stream *stream = task->request->stream;

		if (task->loss.count == 0) {
			mmc_stock_end(task->request->stock, task->action.first);
			continue;
		}
		mmc_op_on_mended(task->request->op, &task->action);
		mmc_count(&stream->counters, MMC_COUNT_CODER_MENDED, 1);
		stream->needs_poll = true;
		mended = true;
	}
	return mended;
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
