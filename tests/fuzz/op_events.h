/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events that the input's bytes bring about: from other ranks, which may lie, and
 * from this rank's own device. In `form` each bit chooses one property of the event.
 */
#ifndef MMC_TESTS_OP_EVENTS_H
#define MMC_TESTS_OP_EVENTS_H

#include "core/operation/carried.h"
#include "op_world.h"

/* Delivers a parity chunk, and checks that it is kept only where a group lacks chunks. */
static inline void bring_parity(struct world *world, struct mmc_op *op,
				uint32_t source, uint32_t index,
				uint32_t nbytes)
{
	uint32_t nheld;
	int slot;

	if (op == NULL)
		return;
	nheld = op->mender == NULL ? 0 : op->mender->nheld;
	slot = mmc_op_on_parity(op, source, index, nbytes, world->now_ns);
	if (slot < 0)
		return;
	MMC_ASSERT((uint32_t)slot < mmc_op_slots(&op->config));
	MMC_ASSERT(op->mender->nheld == nheld + 1);
	MMC_ASSERT(nbytes <= CHUNK_BYTES);
	MMC_ASSERT(!world->epoch[op->config.epoch].over);
	MMC_ASSERT(mmc_op_on_parity(op, source, index, nbytes, world->now_ns) ==
		   MMC_UNKEPT_USELESS);
}

/* Delivers a chunk of data or parity, and checks what the core decides about it. */
static inline void bring_chunk(struct world *world)
{
	uint32_t source = take(&world->input, 1) % world->config.nranks;
	uint32_t epoch = take(&world->input, 1) % EPOCHS_MAX + 1;
	uint32_t form = take(&world->input, 1);
	uint32_t index = form & 1 ? take(&world->input, 4)
				  : take(&world->input, 1);
	uint32_t nbytes = form & 2 ? take(&world->input, 1) : CHUNK_BYTES;
	struct mmc_op *op = world->epoch[epoch].op;
	uint32_t owner;
	uint32_t chunk;

	if (form & 8) {
		/* Of a single byte, half is the group's number, and half the row's. */
		if (!(form & 1))
			index = (index >> 4) << MMC_INDEX_GROUP_SHIFT |
				(index & 15);
		bring_parity(world, op, source, index | MMC_INDEX_PARITY,
			     nbytes);
		return;
	}
	index = (index & MMC_INDEX_MASK) | (form & 4 ? MMC_INDEX_REPAIR : 0);
	chunk = index & MMC_INDEX_MASK;
	if (op == NULL || world->nplacing == PLACING_MAX)
		return;
	if (chunk < op->layout.nchunks &&
	    mmc_bitmap_test(&op->claimed, chunk)) {
		MMC_ASSERT(mmc_op_on_chunk(op, source, index, nbytes,
					   world->now_ns) != MMC_VERDICT_PLACE);
		return;
	}
	if (mmc_op_on_chunk(op, source, index, nbytes, world->now_ns) !=
	    MMC_VERDICT_PLACE)
		return;
	MMC_ASSERT(chunk < op->layout.nchunks);
	owner = mmc_layout_owner(&op->layout, chunk);
	MMC_ASSERT(nbytes == mmc_layout_payload(&op->layout, chunk));
	MMC_ASSERT(owner == source || (index & MMC_INDEX_REPAIR));
	MMC_ASSERT(!world->epoch[epoch].over);
	world->placing[world->nplacing++] =
		(struct placing){ .epoch = epoch, .chunk = chunk };
}

/* Delivers a run of chunks, and checks that all or none are claimed. */
static inline void bring_run(struct world *world)
{
	uint32_t source = take(&world->input, 1) % world->config.nranks;
	uint32_t epoch = take(&world->input, 1) % EPOCHS_MAX + 1;
	uint32_t form = take(&world->input, 1);
	struct mmc_run run = {
		.first = form & 1 ? take(&world->input, 4)
				  : take(&world->input, 1),
		.count = 1 + (form & 2 ? take(&world->input, 4) % UINT32_MAX
				       : take(&world->input, 1)),
	};
	uint32_t last_bytes = form & 4 ? take(&world->input, 1) : CHUNK_BYTES;
	struct mmc_op *op = world->epoch[epoch].op;
	struct mmc_run all = { .count = 0 };
	uint32_t nclaimed;

	if (op == NULL)
		return;
	all.count = op->layout.nchunks;
	nclaimed = mmc_bitmap_count_run(&op->claimed, all);
	if (!mmc_op_on_run(op, source, run, last_bytes, world->now_ns)) {
		MMC_ASSERT(mmc_bitmap_count_run(&op->claimed, all) == nclaimed);
		return;
	}
	MMC_ASSERT(mmc_bitmap_count_run(&op->claimed, all) ==
		   nclaimed + run.count);
	MMC_ASSERT(mmc_layout_owner(&op->layout, run.first) == source);
	MMC_ASSERT(mmc_layout_owner(&op->layout, run.first + run.count - 1) ==
		   source);
	MMC_ASSERT(last_bytes ==
		   mmc_layout_payload(&op->layout, run.first + run.count - 1));
	MMC_ASSERT(!world->epoch[epoch].over);
	mmc_op_on_run_placed(op, run);
}

/* Ends any placement that is under way. */
static inline void finish_placing(struct world *world)
{
	uint32_t pick = take(&world->input, 1);
	struct placing placing;

	if (world->nplacing == 0)
		return;
	pick %= world->nplacing;
	placing = world->placing[pick];
	world->placing[pick] = world->placing[--world->nplacing];
	mmc_op_on_placed(world->epoch[placing.epoch].op, placing.chunk);
}

/* Delivers the chunks that a read has brought. */
static inline void bring_fetched(struct world *world, uint32_t epoch,
				 struct mmc_run run)
{
	struct mmc_op *op = world->epoch[epoch].op;

	for (uint32_t c = run.first; c < run.first + run.count; c++) {
		bool claimed = mmc_bitmap_test(&op->claimed, c);
		enum mmc_verdict verdict =
			mmc_op_on_fetched(op, c, world->now_ns);

		MMC_ASSERT(verdict == (claimed ? MMC_VERDICT_DUPLICATE
					       : MMC_VERDICT_PLACE));
		if (claimed)
			continue;
		if (world->nplacing == PLACING_MAX)
			mmc_op_on_placed(op, c);
		else
			world->placing[world->nplacing++] = (struct placing){
				.epoch = epoch,
				.chunk = c,
			};
	}
}

/* Ends any read that is under way, with any outcome and content. */
static inline void finish_reading(struct world *world)
{
	uint64_t words[MMC_READ_WORDS_MAX + 1];
	uint32_t pick = take(&world->input, 1);
	uint32_t form = take(&world->input, 1);
	uint64_t generation = take(&world->input, 1);
	struct reading reading;
	struct mmc_op *op;

	if (world->nreading == 0)
		return;
	pick %= world->nreading;
	reading = world->reading[pick];
	world->reading[pick] = world->reading[--world->nreading];
	op = world->epoch[reading.epoch].op;
	if (form & 6)
		generation = op->repair.fetcher.advert.generation;
	if (!reading.map) {
		if (mmc_op_on_read(op, reading.run, generation))
			bring_fetched(world, reading.epoch, reading.run);
		return;
	}
	for (uint32_t i = 0; i < reading.run.count; i++)
		words[i] = form & 1 ? ~UINT64_C(0)
				    : (uint64_t)take(&world->input, 4) << 32 |
					      take(&world->input, 4);
	words[reading.run.count] = generation;
	mmc_op_on_map(op, reading.run,
		      generation == 0 ? NULL : (const uint8_t *)words,
		      world->now_ns);
}

/* Ends the sending of some or all of the chunks that an operation has under way. */
static inline void finish_sending(struct world *world)
{
	struct epoch *epoch =
		&world->epoch[take(&world->input, 1) % EPOCHS_MAX + 1];
	uint32_t most = take(&world->input, 1);

	if (epoch->op == NULL || epoch->nsending == 0)
		return;
	most = most < epoch->nsending ? most : epoch->nsending;
	mmc_op_on_sent(epoch->op, most);
	epoch->nsending -= most;
}

/* Delivers a report of the input's numbers, once it was encoded and decoded. */
static inline void bring_report(struct world *world, enum mmc_message_kind kind,
				uint32_t source, uint32_t epoch)
{
	struct input *input = &world->input;
	struct mmc_message message = {
		.kind = kind,
		.record = { .sent_chunks = take(input, 1) },
		.nitems = take(input, 1) % 9,
	};
	uint8_t bytes[MMC_MESSAGE_BYTES_MAX];

	for (uint32_t i = 0; i < message.nitems; i++)
		message.positions[i] = take(input, 1);
	mmc_message_encode(bytes, &message);
	MMC_ASSERT(mmc_message_decode(&message, kind, bytes,
				      mmc_message_bytes(&message)) == 0);
	mmc_epochs_on_message(&world->epochs, source, epoch, &message,
			      world->now_ns);
}

/* Delivers a part of blocks, and checks that it is placed once and while it may be. */
static inline void bring_part(struct world *world, uint32_t source,
			      struct mmc_op *op, uint32_t first,
			      uint32_t nbytes)
{
	uint32_t claimed;
	struct mmc_run run;

	if (op == NULL || mmc_op_on_part(op, source, first, nbytes, &run) !=
				  MMC_VERDICT_PLACE)
		return;
	MMC_ASSERT(!world->epoch[op->config.epoch].over);
	MMC_ASSERT(run.first < op->layout.nsenders &&
		   run.count <= op->layout.nsenders);
	MMC_ASSERT(first + nbytes <= run.count * op->layout.block_bytes);
	claimed = mmc_bitmap_count_run(
		&op->claimed, (struct mmc_run){ .count = op->layout.nchunks });
	MMC_ASSERT(op->npresent <= claimed);
	mmc_op_on_carried(op, source, first, world->now_ns);
	MMC_ASSERT(op->npresent <= op->layout.nchunks);
	MMC_ASSERT(mmc_op_on_part(op, source, first, nbytes, &run) ==
		   MMC_VERDICT_DUPLICATE);
}

/*
 * Puts the bytes of a message together from the input, field by field as core/wire lays
 * them out, and delivers it if it can be decoded.
 */
static inline void bring_message(struct world *world)
{
	struct input *input = &world->input;
	uint32_t source = take(input, 1) % world->config.nranks;
	uint32_t epoch = take(input, 1) % (EPOCHS_MAX + 2);
	uint32_t kind = take(input, 1) % MMC_MESSAGE_COUNT;
	uint32_t nitems = kind == 0 ? 0 : take(input, 1);
	uint8_t bytes[MMC_MESSAGE_BYTES + 8 * 36] = { 0 };
	uint32_t item_bytes = kind == MMC_MESSAGE_ADVERT   ? 36
			      : kind == MMC_MESSAGE_BLOCKS ? 1
							   : 8;
	uint32_t nbytes;
	struct mmc_message message;

	nitems %= kind == MMC_MESSAGE_BLOCKS ? 100 : 9;
	nbytes = MMC_MESSAGE_BYTES + nitems * item_bytes;
	if (kind == MMC_MESSAGE_BLOCKS)
		nbytes += MMC_PART_HEAD_BYTES;
	if (kind == MMC_MESSAGE_REPORT || kind == MMC_MESSAGE_WATERMARK) {
		bring_report(world, (enum mmc_message_kind)kind, source, epoch);
		return;
	}
	mmc_put_u32(bytes, take(input, 1));	 /* stamp */
	mmc_put_u32(bytes + 4, take(input, 1));	 /* echo */
	mmc_put_u32(bytes + 8, take(input, 4));	 /* flags, rounds, failure */
	mmc_put_u32(bytes + 12, take(input, 1)); /* culprit */
	mmc_put_u32(bytes + 16, take(input, 1)); /* sent chunks */
	mmc_put_u64(bytes + 20, world->config.signature);
	mmc_put_u64(bytes + 28, world->config.signature);
	if (take(input, 1) % 2)
		mmc_put_u32(bytes + 24, take(input, 4));
	mmc_put_u32(bytes + 36, take(input, 2)); /* window */
	mmc_put_u32(bytes + 40, take(input, 2)); /* round trip */
	mmc_put_u32(bytes + 44, take(input, 1)); /* lag */
	mmc_put_u32(bytes + 48, nitems);
	mmc_put_u64(bytes + 56, take(input, 1) == 255); /* deaf */
	mmc_put_u32(bytes + 64, take(input, 1));	/* late rank */
	mmc_put_u32(bytes + 68, take(input, 2));	/* late age */
	for (uint32_t at = MMC_MESSAGE_BYTES; at + 4 <= nbytes; at += 4)
		mmc_put_u32(bytes + at, take(input, 1));
	if (mmc_message_decode(&message, kind, bytes, nbytes) != 0)
		return;
	if (kind == MMC_MESSAGE_BLOCKS && epoch <= EPOCHS_MAX)
		bring_part(world, source, world->epoch[epoch].op,
			   message.part.first, nitems);
	mmc_epochs_on_message(&world->epochs, source, epoch, &message,
			      world->now_ns);
}

/*
 * Delivers a record that an honest rank might send. Few inputs would pass a
 * barrier without it.
 */
static inline void bring_record(struct world *world)
{
	uint32_t source = take(&world->input, 1) % world->config.nranks;
	uint32_t form = take(&world->input, 1);
	const struct mmc_message message = {
		.kind = form & 16 ? MMC_MESSAGE_ADVERT : MMC_MESSAGE_RECORD,
		.nitems = form & 16 ? 1 : 0,
		.advert = {
			.generation = form & 64 ? 0 : GENERATION,
			.has_data = (form & 32) != 0,
		},
		.stamp_us = form & 8,
		.record = {
			.flags = MMC_RECORD_ENTERED |
				 (form & 1 ? MMC_RECORD_DONE : 0),
			.entry_rounds = form & 2 ? MMC_ROUNDS_MAX : 0,
			.release_rounds = form & 4 ? MMC_ROUNDS_MAX : 0,
			.culprit = MMC_PEER_NONE,
			.sent_chunks = form >> 4,
			.terms = {
				.signature_min = world->config.signature,
				.signature_max = world->config.signature,
				.window_bytes = world->config.window_bytes,
				.source_bytes = world->config.source_bytes,
				.srtt_us = 50,
				.lag_epochs = 1,
				.parity = form >> 5,
			},
		},
	};

	mmc_epochs_on_message(&world->epochs, source,
			      take(&world->input, 1) % EPOCHS_MAX + 1, &message,
			      world->now_ns);
}

/* Tells the core, truly or not, that the process of a rank exists or has ended. */
static inline void bring_finding(struct world *world)
{
	uint32_t peer = take(&world->input, 1) % world->config.nranks;

	if (take(&world->input, 1) % 4 == 0)
		mmc_epochs_on_gone(&world->epochs, peer);
	else
		mmc_epochs_on_alive(&world->epochs, peer);
}

#endif
