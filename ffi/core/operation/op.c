/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/op.h"

#include "core/operation/due.h"
#include "core/operation/parity.h"
#include "core/plan/rounds.h"
#include "support/assert.h"
#include "support/bits.h"
#include "support/memory.h"
#include "support/states.h"

/*
 * An awaited rank is asked after this time, in case its message was lost. Where
 * messages are hardly ever lost, the rank is most likely just not ready, and asking is
 * not urgent.
 */
#define ASK_MIN_NS (200 * MMC_US_NS)
#define ASK_MIN_RELIABLE_NS (100 * MMC_MS_NS)

/*
 * The root of a Bcast without a whole barrier may be asked by all ranks. Each waits so
 * long for each of them. What it multicasts may be lost on any transport.
 */
#define ASK_HUB_NS (10 * MMC_US_NS)

/* A failure is multicast so often, since no rank would ask for a lost message. */
#define ALARMS 3

/* ---- states ------------------------------------------------------------- */

static const struct mmc_transition transitions[] = {
#define MMC_OP_ROW(state, event, next)                                         \
	{ MMC_OP_##state, MMC_OP_##event, MMC_OP_##next },
	MMC_OP_TABLE(MMC_OP_ROW)
#undef MMC_OP_ROW
};

bool mmc_op_next_state(enum mmc_op_state state, enum mmc_op_event event,
		       enum mmc_op_state *next)
{
	unsigned found = state;
	bool leads = mmc_transition_find(
		transitions, sizeof(transitions) / sizeof(*transitions), state,
		event, &found);

	*next = (enum mmc_op_state)found;
	return leads;
}

void mmc_op_step(struct mmc_op *op, enum mmc_op_event event)
{
	MMC_ASSERT(mmc_op_next_state(op->state, event, &op->state));
}

const char *mmc_op_state_name(enum mmc_op_state state)
{
	switch (state) {
	case MMC_OP_ENTRY:
		return "entry";
	case MMC_OP_FLOW:
		return "flow";
	case MMC_OP_RELEASE:
		return "release";
	case MMC_OP_COPIED:
		return "copied";
	case MMC_OP_HELPING:
		return "helping";
	case MMC_OP_DETACHED:
		return "detached";
	case MMC_OP_CLOSED:
		return "closed";
	case MMC_OP_FAILED:
		return "failed";
	case MMC_OP_REFUSED:
		return "refused";
	}
	return "unknown";
}

/* ---- entering ----------------------------------------------------------- */

/* Counts the chunks; mmc_layout_tabulate() fills the table of uneven blocks later. */
static int count_chunks(const struct mmc_op_config *config,
			struct mmc_layout *layout)
{
	if (config->blocks_bytes != NULL)
		return mmc_layout_init_each(layout, config->nranks,
					    config->blocks_bytes,
					    config->chunk_bytes);
	if (config->sole)
		return mmc_layout_init_sole(layout, config->nranks,
					    config->root, config->block_bytes,
					    config->chunk_bytes);
	return mmc_layout_init(layout, config->nranks, config->block_bytes,
			       config->chunk_bytes);
}

static uint32_t chains_max(const struct mmc_layout *layout)
{
	return mmc_min_u32(layout->nsenders, MMC_CHAINS_MAX);
}

/* Returns the ranks that have a block, be it an empty one. */
static struct mmc_run ranks_of(const struct mmc_op_config *config)
{
	return config->sole ? (struct mmc_run){ config->root, 1 }
			    : (struct mmc_run){ 0, config->nranks };
}

/* Returns the bytes of memory for the blocks that have landed. */
static size_t landing_bytes(const struct mmc_op_config *config)
{
	return mmc_config_is_partial(config) ? mmc_part_bytes(mmc_landing_bytes(
						       ranks_of(config).count))
					     : 0;
}

/* Returns the bytes of memory that an operation takes for its code. */
static size_t parity_bytes(const struct mmc_op_config *config,
			   const struct mmc_layout *layout)
{
	return mmc_op_may_be_coded(config)
		       ? mmc_op_parity_bytes(config, layout->nchunks)
		       : 0;
}

size_t mmc_op_footprint(const struct mmc_op_config *config)
{
	struct mmc_layout layout;
	size_t generation_bytes = 0;
	uint32_t nchains;

	if (count_chunks(config, &layout) != 0)
		return 0;
	nchains = chains_max(&layout);
	if (config->repair == MMC_REPAIR_READ)
		generation_bytes = mmc_part_bytes(MMC_GENERATION_BYTES);
	return mmc_part_bytes(sizeof(struct mmc_op)) + generation_bytes +
	       mmc_layout_bytes(&layout) + mmc_schedule_bytes(&layout) +
	       landing_bytes(config) +
	       2 * mmc_part_bytes(mmc_bitmap_bytes(layout.nchunks)) +
	       mmc_part_bytes(
		       mmc_repair_bytes(&layout, nchains, config->repair)) +
	       parity_bytes(config, &layout) +
	       mmc_part_bytes(mmc_watermark_bytes(config->nranks, nchains));
}

uint32_t mmc_op_slots(const struct mmc_op_config *config)
{
	struct mmc_layout layout;

	if (config->code_data == 0 || count_chunks(config, &layout) != 0)
		return 0;
	return mmc_mender_slots(layout.nchunks);
}

static enum mmc_op_mode mode_of(const struct mmc_op_config *config,
				const struct mmc_layout *layout)
{
	bool carried =
		layout->sole ? config->is_bare
			     : mmc_rounds_carry(layout, config->carried_bytes);

	if (layout->nchunks == 0 || layout->total_bytes > config->eager_bytes)
		return MMC_OP_STAGED;
	if (carried)
		return MMC_OP_CARRIED;
	return layout->nchunks == layout->nsenders ? MMC_OP_EAGER
						   : MMC_OP_STAGED;
}

uint64_t mmc_op_copy_bytes(const struct mmc_op_config *config)
{
	struct mmc_layout layout;

	if (count_chunks(config, &layout) != 0)
		return 0;
	if (config->sole)
		return config->rank != config->root ? 0 : config->block_bytes;
	if (mode_of(config, &layout) == MMC_OP_CARRIED)
		return layout.total_bytes;
	if (config->repair != MMC_REPAIR_NAK)
		return 0;
	return config->blocks_bytes != NULL ? config->blocks_bytes[config->rank]
					    : config->block_bytes;
}

static struct mmc_record first_record(const struct mmc_op_config *config,
				      uint64_t now_ns)
{
	return (struct mmc_record){
		.flags = MMC_RECORD_ENTERED,
		.culprit = MMC_PEER_NONE,
		.terms = {
			.signature_min = config->signature,
			.signature_max = config->signature,
			.window_bytes = config->window_bytes,
			.source_bytes = config->source_bytes,
			.srtt_us = (uint32_t)(config->path->srtt_ns /
					      MMC_US_NS),
			.lag_epochs = config->lag_epochs,
			.deaf = mmc_path_is_deaf(config->path, now_ns)
					? mmc_terms_deaf(config->rank,
							 config->path->unheard)
					: 0,
		},
	};
}

/*
 * Takes a part of the memory for the generation, whose word goes to the end of the
 * part, right before the next one, which is the bitmap `present`. With other policies
 * than read nothing can be read, and no generation is needed.
 */
static void lay_out_generation(const struct mmc_op *op, uint8_t **memory,
			       struct mmc_repair_config *repair)
{
	if (op->config.repair != MMC_REPAIR_READ)
		return;
	mmc_part_take(memory, MMC_GENERATION_BYTES);
	repair->generation = op->config.generation;
	repair->generation_word =
		(uint64_t *)(void *)(*memory - MMC_GENERATION_BYTES);
}

/* Divides the memory among the parts of the operation, as mmc_op_footprint() counts. */
static void lay_out(struct mmc_op *op, uint8_t *memory)
{
	const struct mmc_op_config *config = &op->config;
	struct mmc_repair_config repair = {
		.policy = config->repair,
		.rank = config->rank,
		.nchains = chains_max(&op->layout),
		.read_bytes = config->read_bytes,
		.seed = config->seed,
		.layout = &op->layout,
		.claimed = &op->claimed,
		.present = &op->present,
	};
	uint32_t nchunks = op->layout.nchunks;
	size_t map_bytes = mmc_bitmap_bytes(nchunks);
	uint8_t *part;

	part = mmc_part_take(&memory, mmc_layout_bytes(&op->layout));
	mmc_layout_tabulate(&op->layout, part, config->blocks_bytes);
	op->schedule_memory =
		mmc_part_take(&memory, mmc_schedule_bytes(&op->layout));
	mmc_bitmap_init(&op->claimed, mmc_part_take(&memory, map_bytes),
			nchunks);
	lay_out_generation(op, &memory, &repair);
	mmc_bitmap_init(&op->present, mmc_part_take(&memory, map_bytes),
			nchunks);
	part = mmc_part_take(&memory,
			     mmc_repair_bytes(&op->layout, repair.nchains,
					      config->repair));
	mmc_repair_init(&op->repair, part, &repair);
	if (mmc_op_follows_placed(config))
		op->follows_placed = true;
	if (mmc_config_is_partial(config))
		op->landing_memory =
			mmc_part_take(&memory, landing_bytes(config));
	if (mmc_op_may_be_coded(config)) {
		part = mmc_part_take(&memory,
				     parity_bytes(config, &op->layout));
		mmc_op_init_parity(op, part);
	}
	op->watermark_memory = memory;
}

/* Records that this rank's own block is present, and lets others read that it is. */
static void publish_own_block(struct mmc_op *op)
{
	struct mmc_run own;

	op->own = mmc_layout_block(&op->layout, op->config.rank);
	own = (struct mmc_run){
		.first = op->own.first,
		.count = op->own.nchunks,
	};
	mmc_bitmap_set_run(&op->claimed, own);
	mmc_bitmap_set_run(&op->present, own);
	op->npresent = own.count;
	if (mmc_config_is_partial(&op->config))
		mmc_landing_init(&op->landing, op->landing_memory, &op->layout,
				 &op->present, ranks_of(&op->config),
				 op->config.rank);
	mmc_advertiser_publish(&op->repair.advertiser);
}

struct mmc_op *mmc_op_init(void *memory, const struct mmc_op_config *config,
			   uint64_t now_ns)
{
	struct mmc_op *op = memory;
	int rv;

	*op = (struct mmc_op){
		.config = *config,
		.state = MMC_OP_ENTRY,
		.record = first_record(config, now_ns),
		.heard = { .source = MMC_PEER_NONE },
		.unentered = MMC_PEER_NONE,
		.stage_ns = now_ns,
	};
	rv = count_chunks(config, &op->layout);
	MMC_ASSERT(rv == 0);
	op->mode = mode_of(config, &op->layout);
	lay_out(op, (uint8_t *)memory + mmc_part_bytes(sizeof(*op)));
	publish_own_block(op);
	mmc_barrier_init(&op->entry, config->rank, config->nranks);
	mmc_barrier_init(&op->release, config->rank, config->nranks);
	if (op->mode == MMC_OP_CARRIED)
		mmc_barrier_demand(&op->entry);
	if (op->mode == MMC_OP_CARRIED && config->sole)
		mmc_barrier_make_star(&op->entry, config->root);
	mmc_barrier_join(&op->entry);
	mmc_op_mark_advanced(op, now_ns);
	mmc_liveness_init(&op->liveness, now_ns);
	mmc_op_ask_soon(op, now_ns);
	return op;
}

void mmc_op_ask_soon(struct mmc_op *op, uint64_t now_ns)
{
	uint64_t least_ns = ASK_MIN_NS;

	if (op->config.is_bare)
		least_ns =
			mmc_max_u64(least_ns, op->config.nranks * ASK_HUB_NS);
	else if (op->config.control_is_reliable)
		least_ns = ASK_MIN_RELIABLE_NS;
	mmc_backoff_start(&op->asking, now_ns,
			  mmc_max_u64(least_ns, 2 * op->config.path->srtt_ns));
}

/* ---- failing ------------------------------------------------------------ */

void mmc_op_fail(struct mmc_op *op, enum mmc_error error, uint32_t culprit,
		 bool tell)
{
	if (op->state > MMC_OP_RELEASE)
		return;
	op->record.flags |= MMC_RECORD_FAILED;
	op->record.failure = (uint8_t)error;
	op->record.culprit = culprit;
	op->alarms = tell ? ALARMS : 0;
	mmc_op_wake(op);
	mmc_op_step(op, MMC_OP_FAILURE);
}

void mmc_op_close_advert(struct mmc_op *op)
{
	mmc_advertiser_revoke(&op->repair.advertiser);
}

void mmc_op_all_done(struct mmc_op *op)
{
	mmc_op_wake(op);
	if (mmc_op_has_copy(op) || op->state == MMC_OP_DETACHED)
		mmc_op_step(op, MMC_OP_ALL_DONE);
}

uint32_t mmc_op_awaited(const struct mmc_op *op)
{
	switch (op->state) {
	case MMC_OP_ENTRY:
		return mmc_barrier_passed(&op->entry)
			       ? MMC_PEER_NONE
			       : mmc_barrier_awaited(&op->entry);
	case MMC_OP_FLOW:
		return mmc_repair_awaited(&op->repair);
	case MMC_OP_RELEASE:
		if (op->repair.policy->release == MMC_RELEASE_RIGHT)
			return mmc_op_right(op);
		return mmc_barrier_passed(&op->release)
			       ? MMC_PEER_NONE
			       : mmc_barrier_awaited(&op->release);
	default:
		return MMC_PEER_NONE;
	}
}

uint32_t mmc_op_unentered(const struct mmc_op *op)
{
	if (op->state != MMC_OP_ENTRY || mmc_barrier_passed(&op->entry))
		return MMC_PEER_NONE;
	return mmc_barrier_awaited_has_joined(&op->entry)
		       ? op->unentered
		       : mmc_barrier_awaited(&op->entry);
}
