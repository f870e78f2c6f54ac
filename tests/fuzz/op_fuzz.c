/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes any bytes for what happens to one rank of a stream: starts, chunks and control
 * messages of any rank with any fields, placements, sends, reads that bring anything,
 * time and polls. Whatever the others say, the rank must keep its contracts: no
 * assertion fails, nothing is written twice, nothing is sent that is not present, DONE
 * comes only when all is present, and no deadline lies in the past.
 */
#include "op_world.h"

/* ---- what must hold ------------------------------------------------------ */

static void check_op(const struct mmc_op *op)
{
	uint32_t npresent = 0;

	for (uint32_t c = 0; c < op->layout.nchunks; c++) {
		bool present = mmc_bitmap_test(&op->present, c);

		npresent += present;
		MMC_ASSERT(!present || mmc_bitmap_test(&op->claimed, c));
	}
	MMC_ASSERT(npresent == op->npresent);
}

static void check_control(const struct world *world,
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
}

static void check_send(struct world *world, const struct mmc_action *action)
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

/* Forgets an operation's reads: a failed one may have some, a done one has none. */
static void forget_reads(struct world *world, uint32_t epoch, bool done)
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

static void check_read(struct world *world, const struct mmc_action *action)
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

static void check_end(struct world *world, const struct mmc_action *action)
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
static void forget(struct world *world, const struct mmc_op *op)
{
	struct epoch *epoch = &world->epoch[op->config.epoch];

	MMC_ASSERT(epoch->over);
	MMC_ASSERT(epoch->nsending == 0);
	epoch->op = NULL;
	free(epoch->memory);
}

static void carry_out(struct world *world, const struct mmc_actions *actions,
		      const struct mmc_action *action)
{
	switch (action->kind) {
	case MMC_ACTION_CONTROL:
		check_control(world, actions, action);
		break;
	case MMC_ACTION_SEND:
		check_send(world, action);
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
		mmc_op_registered(action->op, take(&world->input, 1) % 2, 1, 2);
		break;
	case MMC_ACTION_INQUIRE:
		MMC_ASSERT(world->config.inquires);
		MMC_ASSERT(action->peer < world->config.nranks &&
			   action->peer != world->epochs.rank);
		break;
	}
}

/* ---- what happens -------------------------------------------------------- */

/* Polls until nothing is left to do now, which must take a limited number of polls. */
static void poll(struct world *world)
{
	struct mmc_actions actions;
	unsigned nbatches = 0;

	do {
		MMC_ASSERT(nbatches++ < 10000);
		mmc_actions_init(&actions, MMC_CHECKSUM_HEADER);
		mmc_epochs_poll(&world->epochs, world->now_ns, &actions);
		for (uint32_t i = 0; i < actions.count; i++)
			carry_out(world, &actions, &actions.items[i]);
	} while (actions.count > 0 ||
		 mmc_epochs_deadline(&world->epochs) <= world->now_ns);
	for (uint32_t e = 1; e <= EPOCHS_MAX; e++)
		if (world->epoch[e].op != NULL)
			check_op(world->epoch[e].op);
}

static void start(struct world *world)
{
	uint32_t epoch = world->epochs.last + 1;

	if (epoch > EPOCHS_MAX || !mmc_epochs_ready(&world->epochs))
		return;
	world->epoch[epoch].memory = aligned_alloc(
		MMC_ALIGN_BYTES, mmc_op_footprint(&world->config));
	world->epoch[epoch].op =
		mmc_epochs_start(&world->epochs, world->epoch[epoch].memory,
				 &world->config, world->now_ns);
}

static void bring_chunk(struct world *world)
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

static void finish_placing(struct world *world)
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
static void bring_fetched(struct world *world, uint32_t epoch,
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
static void finish_reading(struct world *world)
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

static void finish_sending(struct world *world)
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

/* Writes a report from the input's numbers, and decodes it as if it had arrived. */
static void bring_report(struct world *world, enum mmc_message_kind kind,
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

/* Puts a message together from the input, and decodes it as if it had arrived. */
static void bring_message(struct world *world)
{
	struct input *input = &world->input;
	uint32_t source = take(input, 1) % world->config.nranks;
	uint32_t epoch = take(input, 1) % (EPOCHS_MAX + 2);
	uint32_t kind = take(input, 1) % MMC_MESSAGE_COUNT;
	uint32_t nitems = kind == 0 ? 0 : take(input, 1) % 9;
	uint8_t bytes[MMC_MESSAGE_BYTES + 8 * 36] = { 0 };
	uint32_t item_bytes = kind == MMC_MESSAGE_ADVERT ? 36 : 8;
	uint32_t nbytes = MMC_MESSAGE_BYTES + nitems * item_bytes;
	struct mmc_message message;

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
	for (uint32_t at = MMC_MESSAGE_BYTES; at < nbytes; at += 4)
		mmc_put_u32(bytes + at, take(input, 1));
	if (mmc_message_decode(&message, kind, bytes, nbytes) == 0)
		mmc_epochs_on_message(&world->epochs, source, epoch, &message,
				      world->now_ns);
}

/* Delivers what an honest rank would say; without that few inputs pass a barrier. */
static void bring_record(struct world *world)
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
			.culprit = MMC_PEER_ALL,
			.sent_chunks = form >> 4,
			.terms = {
				.signature_min = world->config.signature,
				.signature_max = world->config.signature,
				.window_bytes = world->config.window_bytes,
				.source_bytes = world->config.source_bytes,
				.srtt_us = 50,
				.lag_epochs = 1,
			},
		},
	};

	mmc_epochs_on_message(&world->epochs, source,
			      take(&world->input, 1) % EPOCHS_MAX + 1, &message,
			      world->now_ns);
}

static void end(struct world *world, uint32_t how)
{
	struct mmc_epochs *epochs = &world->epochs;
	struct mmc_poison poison = { MMC_ECANCELED, epochs->last,
				     epochs->rank };

	if (how == 255)
		mmc_epochs_poison(epochs, poison, true);
	else if (how == 254)
		mmc_epochs_leave(epochs, epochs->last);
}

/* Reports for the transport, rightly or wrongly, that a rank exists or has ended. */
static void bring_finding(struct world *world)
{
	uint32_t peer = take(&world->input, 1) % world->config.nranks;

	if (take(&world->input, 1) % 4 == 0)
		mmc_epochs_on_gone(&world->epochs, peer);
	else
		mmc_epochs_on_alive(&world->epochs, peer);
}

static void step(struct world *world)
{
	uint32_t how;

	switch (take(&world->input, 1) % 16) {
	case 0:
		start(world);
		break;
	case 1:
	case 2:
	case 3:
		bring_chunk(world);
		break;
	case 4:
		bring_message(world);
		break;
	case 5:
	case 6:
		bring_record(world);
		break;
	case 7:
	case 8:
		finish_placing(world);
		break;
	case 9:
	case 10:
		finish_sending(world);
		break;
	case 11:
		world->now_ns += take(&world->input, 2) * MMC_US_NS;
		break;
	case 12:
		world->now_ns += take(&world->input, 1) * MMC_MS_NS;
		break;
	case 14:
		finish_reading(world);
		break;
	case 13:
		how = take(&world->input, 1);
		if (how < 128)
			bring_finding(world);
		else
			end(world, how);
		break;
	default:
		poll(world);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;

	world = (struct world){
		.input = { .data = data, .size = size },
		.now_ns = MMC_S_NS,
	};
	shape(&world);
	start(&world);
	while (world.input.size > 0)
		step(&world);
	poll(&world);
	for (uint32_t e = 1; e <= EPOCHS_MAX; e++)
		if (world.epoch[e].op != NULL)
			free(world.epoch[e].memory);
	free(world.epochs_memory);
	return 0;
}
