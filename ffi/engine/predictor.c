/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/predictor.h"

#include "engine/destination.h"

#include "support/bits.h"

/* A sender's turn in a chain. */
struct turn {
	struct mmc_block block;
	uint32_t rank;
	uint32_t begin; /* the position of the block's first chunk */
	uint32_t end;	/* the position after its last chunk */
};

uint32_t mmc_request_subgroup(const struct mmc_request *request, uint32_t chunk)
{
	const struct mmc_op *op = request->op;
	const struct mmc_block block = mmc_layout_block(
		&op->layout, mmc_layout_owner(&op->layout, chunk));
	uint32_t chain = mmc_op_has_begun(op)
				 ? mmc_schedule_chain(&op->schedule, &block)
				 : block.number;

	return chain % request->stream->team->options.subgroups;
}

bool mmc_request_is_predictable(const struct mmc_request *request)
{
	return request->op->layout.blocks == NULL &&
	       request->operation.offsets_bytes == NULL;
}

/* Returns the turn that a position of a chain falls into. */
static struct turn turn_at(const struct mmc_op *op, uint32_t chain,
			   uint32_t position)
{
	uint32_t rank = mmc_schedule_rank(&op->schedule, chain, position);
	struct mmc_block block = mmc_layout_block(&op->layout, rank);
	uint32_t begin = mmc_schedule_start(&op->schedule, &block);

	return (struct turn){ block, rank, begin, begin + block.nchunks };
}

/*
 * Writes the turn that the cursor is in. If that is this rank's own turn, and its
 * multicast does not come back to it, moves the cursor to the next turn first. Returns
 * false if the cursor is at the end of the chain.
 */
static bool find_turn(const struct mmc_op *op, struct mmc_cursor *cursor,
		      struct turn *turn)
{
	uint32_t end = mmc_schedule_length(&op->schedule, cursor->subgroup);

	while (cursor->position < end) {
		*turn = turn_at(op, cursor->subgroup, cursor->position);
		if (cursor->loops || turn->rank != op->config.rank)
			return true;
		cursor->position = turn->end;
	}
	return false;
}

/* Implements `seek` of struct mmc_predictor; `context` is the request. */
static void seek(const void *context, struct mmc_cursor *cursor, uint32_t count)
{
	const struct mmc_op *op = ((const struct mmc_request *)context)->op;
	struct turn turn;

	cursor->position = op->repair.loss.chains[cursor->subgroup].seen;
	while (count > 0 && find_turn(op, cursor, &turn)) {
		uint32_t n = mmc_min_u32(count, turn.end - cursor->position);

		cursor->position += n;
		count -= n;
	}
	/* Behind the end of the chain there are positions, but no chunks. */
	cursor->position += count;
}

/*
 * Predicts `count` chunks of a turn from `position` on. A chunk that is here already,
 * or is this rank's own, gets no place: its receive is to aim at nothing.
 */
static void predict_turn(const struct mmc_request *request,
			 const struct turn *turn, uint32_t position,
			 struct mmc_prediction *predictions, uint32_t count)
{
	const struct mmc_op *op = request->op;
	const struct mmc_layout *layout = &op->layout;
	uint8_t *base = request->base + turn->block.offset_bytes;
	bool own = turn->rank == op->config.rank;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = position + i - turn->begin;
		uint32_t chunk = turn->block.first + number;
		bool here = own || mmc_bitmap_test(&op->claimed, chunk);

		predictions[i] = (struct mmc_prediction){
			.place = here ? NULL
				      : base + (uint64_t)number *
							 layout->chunk_bytes,
			.nbytes = mmc_layout_block_payload(layout, &turn->block,
							   number),
			.source = turn->rank,
			.index = chunk,
			.position = position + i,
		};
	}
}

/* Implements `predict` of struct mmc_predictor; `context` is the request. */
static void predict(const void *context, struct mmc_cursor *cursor,
		    struct mmc_prediction *predictions, uint32_t count)
{
	const struct mmc_request *request = context;
	struct turn turn;

	while (count > 0 && find_turn(request->op, cursor, &turn)) {
		uint32_t n = mmc_min_u32(count, turn.end - cursor->position);

		predict_turn(request, &turn, cursor->position, predictions, n);
		cursor->position += n;
		predictions += n;
		count -= n;
	}
	/* No chunk follows the chain's last: further receives aim at nothing. */
	cursor->position += count;
	while (count > 0)
		predictions[--count].place = NULL;
}

/* Implements `locate` of struct mmc_predictor; `context` is the request. */
static bool locate(const void *context, const uint8_t *place,
		   uint32_t *subgroup, uint32_t *position)
{
	const struct mmc_request *request = context;
	const struct mmc_schedule *schedule = &request->op->schedule;
	const struct mmc_layout *layout = &request->op->layout;
	uint64_t offset_bytes = (uintptr_t)place - (uintptr_t)request->base;
	struct mmc_block block;
	uint32_t number;

	if (offset_bytes >= layout->total_bytes)
		return false;
	number = (uint32_t)(offset_bytes / layout->block_bytes);
	block = mmc_layout_block(layout, mmc_layout_sender(layout, number));
	*subgroup = mmc_schedule_chain(schedule, &block);
	*position = mmc_schedule_start(schedule, &block) +
		    (uint32_t)((offset_bytes - block.offset_bytes) /
			       layout->chunk_bytes);
	return true;
}

struct mmc_predictor mmc_request_predictor(const struct mmc_request *request)
{
	const struct mmc_op *op = request->op;

	return (struct mmc_predictor){
		.context = request,
		.header = {
			.channel = op->config.channel & MMC_CHANNEL_MASK,
			.epoch = op->config.epoch,
		},
		.nsubgroups = op->schedule.nchains,
		.seek = seek,
		.predict = predict,
		.locate = locate,
		.destination = mmc_request_destination,
	};
}
