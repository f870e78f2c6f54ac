/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contracts that the core must keep, checked on the rank's operations and on each
 * action that the core hands out. The functions also record the action in the world, as
 * something that is now under way.
 */
#ifndef MMC_TESTS_OP_CONTRACT_H
#define MMC_TESTS_OP_CONTRACT_H

#include "op_world.h"

/* Checks that present chunks are claimed, and are as many as the operation counts. */
static inline void check_op(const struct mmc_op *op)
{
	uint32_t npresent = 0;

	for (uint32_t c = 0; c < op->layout.nchunks; c++) {
		bool present = mmc_bitmap_test(&op->present, c);

		npresent += present;
		MMC_ASSERT(!present || mmc_bitmap_test(&op->claimed, c));
	}
	MMC_ASSERT(npresent == op->npresent);
}

/* Checks that the blocks that a control message carries are here. */
static inline void check_carried(const struct mmc_action *action)
{
	for (uint32_t i = 0; i < action->run.count; i++) {
		const struct mmc_layout *layout = &action->op->layout;
		uint32_t number = (action->run.first + i) % layout->nsenders;
		const struct mmc_block block = mmc_layout_block(
			layout, mmc_layout_sender(layout, number));

		for (uint32_t c = 0; c < block.nchunks; c++)
			MMC_ASSERT(mmc_bitmap_test(&action->op->claimed,
						   block.first + c));
	}
}

/* Checks that a control message goes to a rank and can be decoded. */
static inline void check_control(const struct world *world,
				 const struct mmc_actions *actions,
				 const struct mmc_action *action)
{
	const uint8_t *bytes = actions->arena + action->offset;
	struct mmc_header header;
	struct mmc_message message;

	MMC_ASSERT(action->peer == MMC_PEER_ALL ||
		   action->peer < world->config.nranks);
	MMC_ASSERT(mmc_header_decode(&header, bytes, action->nbytes,
				     MMC_CHECKSUM_HEADER) == 0);
	MMC_ASSERT(mmc_message_decode(&message, header.index & MMC_INDEX_MASK,
				      bytes + MMC_HEADER_BYTES,
				      action->nbytes - MMC_HEADER_BYTES) == 0);
	check_carried(action);
}

/*
 * Checks that chunks to send are present. They must be this rank's own when
 * they are first sent, and once the user has the buffers back.
 */
static inline void check_send(struct world *world,
			      const struct mmc_action *action)
{
	const struct mmc_op *op = action->op;
	struct epoch *epoch = &world->epoch[op->config.epoch];
	uint32_t end = action->run.first + action->run.count;

	MMC_ASSERT(action->run.count > 0);
	MMC_ASSERT(end <= op->layout.nchunks);
	MMC_ASSERT(action->peer == MMC_PEER_ALL ||
		   action->peer < world->config.nranks);
	for (uint32_t c = action->run.first; c < end; c++) {
		MMC_ASSERT(mmc_bitmap_test(&op->present, c));
		if (!action->repair || epoch->over)
			MMC_ASSERT(c - op->own.first < op->own.nchunks);
	}
	MMC_ASSERT(!epoch->over || epoch->retained);
	epoch->nsending += action->run.count;
}

/* Checks that parity to send is of a group of this rank's that is here as a whole. */
static inline void check_parity(struct world *world,
				const struct mmc_action *action)
{
	const struct mmc_op *op = action->op;
	const struct mmc_grouping *grouping = &op->mender->grouping;
	struct epoch *epoch = &world->epoch[op->config.epoch];
	struct mmc_group group;

	MMC_ASSERT(mmc_op_is_coded(op) && !epoch->over);
	MMC_ASSERT(action->first <
		   mmc_grouping_count(grouping, op->own.nchunks));
	MMC_ASSERT(action->run.count > 0);
	MMC_ASSERT(action->run.first + action->run.count <=
		   mmc_grouping_rows(grouping));
	group = mmc_op_own_group(op, action->first);
	for (uint32_t i = 0; i < group.ndata; i++)
		MMC_ASSERT(mmc_bitmap_test(&op->present,
					   group.first + i * group.stride));
	epoch->nsending += action->run.count;
}

/*
 * Mends a group, which must lack what is mended, and nothing else. The parity for it must
 * lie in slots of its own.
 */
static inline void mend(struct world *world, const struct mmc_action *action)
{
	struct mmc_op *op = action->op;
	struct mmc_bitmap *present = &op->present;
	uint32_t nabsent = 0;
	struct mmc_mend mend;

	MMC_ASSERT(!world->epoch[op->config.epoch].over);
	mmc_op_describe_mend(op, action, &mend);
	for (uint32_t i = 0; i < mend.ndata; i++)
		nabsent +=
			!mmc_bitmap_test(present, mend.first + i * mend.stride);
	MMC_ASSERT(mend.nlost > 0 && mend.nlost == nabsent);
	for (uint32_t i = 0; i < mend.nlost; i++) {
		uint32_t chunk = mend.first + mend.columns[i] * mend.stride;

		MMC_ASSERT(mend.columns[i] < mend.ndata);
		MMC_ASSERT(mmc_bitmap_test(&op->claimed, chunk));
		MMC_ASSERT(!mmc_bitmap_test(present, chunk));
		MMC_ASSERT(mend.slots[i] < mmc_op_slots(&op->config));
		for (uint32_t other = 0; other < i; other++)
			MMC_ASSERT(mend.slots[other] != mend.slots[i] &&
				   mend.rows[other] != mend.rows[i]);
	}
	mmc_op_on_mended(op, action);
}

/* Forgets the reads of a failed operation; if it is `done`, there are none. */
static inline void forget_reads(struct world *world, uint32_t epoch, bool done)
{
	for (uint32_t i = 0; i < world->nreading;) {
		if (world->reading[i].epoch != epoch) {
			i++;
			continue;
		}
		MMC_ASSERT(!done);
		world->reading[i] = world->reading[--world->nreading];
	}
}

/* Checks that a read is of the left neighbour, for chunks not claimed. */
static inline void check_read(struct world *world,
			      const struct mmc_action *action)
{
	const struct mmc_op *op = action->op;
	struct mmc_run run = action->run;
	bool map = action->kind == MMC_ACTION_READ_MAP;
	uint32_t end = map ? (op->layout.nchunks + 63) / 64
			   : op->layout.nchunks;

	MMC_ASSERT(op->repair.fetcher.advert.has_data);
	MMC_ASSERT(action->peer == mmc_op_left(op));
	MMC_ASSERT(!world->epoch[op->config.epoch].over);
	MMC_ASSERT(run.count > 0 && run.first < end &&
		   run.count <= end - run.first);
	MMC_ASSERT(run.count * 8 + MMC_GENERATION_BYTES <=
		   world->config.read_bytes);
	for (uint32_t c = run.first; !map && c < run.first + run.count; c++)
		MMC_ASSERT(!mmc_bitmap_test(&op->claimed, c));
	MMC_ASSERT(world->nreading < READING_MAX);
	world->reading[world->nreading++] = (struct reading){
		.epoch = op->config.epoch,
		.map = map,
		.run = run,
	};
}

/*
 * Checks that an operation ends once, with no chunk under way; if DONE, with
 * all chunks present.
 */
static inline void check_end(struct world *world,
			     const struct mmc_action *action)
{
	const struct mmc_op *op = action->op;
	struct epoch *epoch = &world->epoch[op->config.epoch];

	MMC_ASSERT(!epoch->over);
	MMC_ASSERT(epoch->nsending == 0);
	for (uint32_t i = 0; i < world->nplacing; i++)
		MMC_ASSERT(world->placing[i].epoch != op->config.epoch);
	if (action->kind == MMC_ACTION_DONE)
		MMC_ASSERT(op->npresent == op->layout.nchunks);
	forget_reads(world, op->config.epoch, action->kind == MMC_ACTION_DONE);
	epoch->over = true;
	epoch->retained = action->retain;
}

/* Frees the memory of a closed operation, so that ASan finds any later access. */
static inline void forget(struct world *world, const struct mmc_op *op)
{
	struct epoch *epoch = &world->epoch[op->config.epoch];

	MMC_ASSERT(epoch->over);
	MMC_ASSERT(epoch->nsending == 0);
	epoch->op = NULL;
	free(epoch->memory);
}

/* Checks an action, and carries out what needs no further input. */
static inline void carry_out(struct world *world,
			     const struct mmc_actions *actions,
			     const struct mmc_action *action)
{
	switch (action->kind) {
	case MMC_ACTION_CONTROL:
		check_control(world, actions, action);
		break;
	case MMC_ACTION_SEND:
		check_send(world, action);
		break;
	case MMC_ACTION_PARITY:
		check_parity(world, action);
		break;
	case MMC_ACTION_MEND:
		mend(world, action);
		break;
	case MMC_ACTION_DONE:
	case MMC_ACTION_FAILED:
		check_end(world, action);
		break;
	case MMC_ACTION_CLOSED:
		forget(world, action->op);
		break;
	case MMC_ACTION_READ:
	case MMC_ACTION_READ_MAP:
		check_read(world, action);
		break;
	case MMC_ACTION_REGISTER:
		MMC_ASSERT(!world->epoch[action->op->config.epoch].over);
		mmc_op_registered(action->op,
				  take(&world->input, 1) % 2
					  ? &(struct mmc_readable){ 1, 2, 3, 4 }
					  : NULL);
		break;
	case MMC_ACTION_INQUIRE:
		MMC_ASSERT(world->config.inquires);
		MMC_ASSERT(action->peer < world->config.nranks &&
			   action->peer != world->epochs.rank);
		break;
	}
}

#endif
