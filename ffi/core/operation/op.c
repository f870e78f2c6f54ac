/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/operation/op.h"

#include "support/assert.h"
#include "support/bits.h"
#include "support/memory.h"

/*
 * A partner that is waited for is asked no sooner than this, since its message may be
 * lost. Where messages are not lost, the partner can only be dead, and asking is not
 * urgent.
 */
#define ASK_MIN_NS (200 * MMC_US_NS)
#define ASK_MIN_RELIABLE_NS (100 * MMC_MS_NS)

/* Failure notices are sent this often: no rank would ask again for a lost one. */
#define ALARMS 3

/* ---- states ------------------------------------------------------------- */

struct transition {
	enum mmc_op_state state;
	enum mmc_op_event event;
	enum mmc_op_state next;
};

static const struct transition transitions[] = {
#define MMC_OP_ROW(state, event, next)                                         \
	{ MMC_OP_##state, MMC_OP_##event, MMC_OP_##next },
	MMC_OP_TABLE(MMC_OP_ROW)
#undef MMC_OP_ROW
};

bool mmc_op_next_state(enum mmc_op_state state, enum mmc_op_event event,
		       enum mmc_op_state *next)
{
	for (size_t i = 0; i < sizeof(transitions) / sizeof(*transitions); i++)
		if (transitions[i].state == state &&
		    transitions[i].event == event) {
			*next = transitions[i].next;
			return true;
		}
	return false;
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
	case MMC_OP_RETAINED:
		return "retained";
	case MMC_OP_CLOSED:
		return "closed";
	case MMC_OP_FAILED:
		return "failed";
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

size_t mmc_op_footprint(const struct mmc_op_config *config)
{
	struct mmc_layout layout;
	size_t read_bytes = 0;
	uint32_t nchains;

	if (count_chunks(config, &layout) != 0)
		return 0;
	nchains = chains_max(&layout);
	if (config->repair == MMC_REPAIR_READ)
		read_bytes = mmc_part_bytes(MMC_GENERATION_BYTES) +
			     mmc_part_bytes(mmc_fetcher_bytes(layout.nchunks));
	return mmc_part_bytes(sizeof(struct mmc_op)) + read_bytes +
	       mmc_layout_bytes(&layout) + mmc_schedule_bytes(&layout) +
	       2 * mmc_part_bytes(mmc_bitmap_bytes(layout.nchunks)) +
	       mmc_part_bytes(mmc_loss_bytes(layout.nchunks, layout.nsenders,
					     nchains)) +
	       mmc_part_bytes(mmc_repairer_bytes(layout.nchunks)) +
	       mmc_part_bytes(mmc_watermark_bytes(config->nranks, nchains));
}

/* Returns whether each sender has one datagram, and all of them few bytes. */
static bool is_eager(const struct mmc_layout *layout, uint64_t eager_bytes)
{
	return layout->nchunks > 0 && layout->nchunks == layout->nsenders &&
	       layout->total_bytes <= eager_bytes;
}

static struct mmc_record first_record(const struct mmc_op_config *config,
				      uint64_t now_ns)
{
	return (struct mmc_record){
		.flags = MMC_RECORD_ENTERED,
		.culprit = MMC_PEER_ALL,
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
 * Places the generation's word at the end of a part, right before the bitmap in the
 * next.
 */
static uint8_t *lay_out_advert(struct mmc_op *op, uint8_t *memory)
{
	mmc_part_take(&memory, MMC_GENERATION_BYTES);
	op->generation = (uint64_t *)(void *)(memory - MMC_GENERATION_BYTES);
	op->advert = op->config.advert;
	if (op->advert.generation != 0)
		op->advert.map_address += (uint64_t)(memory - (uint8_t *)op);
	return memory;
}

/* Gives the parts of the operation their memory, in the footprint's order. */
static void lay_out(struct mmc_op *op, uint8_t *memory)
{
	const struct mmc_op_config *config = &op->config;
	uint32_t nchunks = op->layout.nchunks;
	uint32_t nchains = chains_max(&op->layout);
	size_t map_bytes = mmc_bitmap_bytes(nchunks);
	uint8_t *part;

	part = mmc_part_take(&memory, mmc_layout_bytes(&op->layout));
	mmc_layout_tabulate(&op->layout, part, config->blocks_bytes);
	op->schedule_memory =
		mmc_part_take(&memory, mmc_schedule_bytes(&op->layout));
	mmc_bitmap_init(&op->claimed, mmc_part_take(&memory, map_bytes),
			nchunks);
	if (config->repair == MMC_REPAIR_READ)
		memory = lay_out_advert(op, memory);
	mmc_bitmap_init(&op->present, mmc_part_take(&memory, map_bytes),
			nchunks);
	part = mmc_part_take(
		&memory, mmc_loss_bytes(nchunks, op->layout.nsenders, nchains));
	mmc_loss_init(&op->loss, part,
		      &(struct mmc_loss_config){
			      .policy = op->policy,
			      .rank = config->rank,
			      .nchunks = nchunks,
			      .nchains = nchains,
			      .seed = config->seed,
		      });
	op->repairer_memory =
		mmc_part_take(&memory, mmc_repairer_bytes(nchunks));
	op->watermark_memory = mmc_part_take(
		&memory, mmc_watermark_bytes(config->nranks, nchains));
	if (config->repair == MMC_REPAIR_READ)
		mmc_fetcher_init(&op->fetcher, memory, config->rank,
				 &op->layout, config->read_bytes);
}

static void own_block_is_here(struct mmc_op *op)
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
	if (op->generation != NULL)
		__atomic_store_n(op->generation, op->advert.generation,
				 __ATOMIC_RELEASE);
}

struct mmc_op *mmc_op_init(void *memory, const struct mmc_op_config *config,
			   uint64_t now_ns)
{
	struct mmc_op *op = memory;
	int rv;

	*op = (struct mmc_op){
		.config = *config,
		.policy = mmc_repair_policy(config->repair),
		.state = MMC_OP_ENTRY,
		.record = first_record(config, now_ns),
		.heard = { .source = MMC_PEER_ALL },
		.late = MMC_PEER_ALL,
		.stage_ns = now_ns,
	};
	rv = count_chunks(config, &op->layout);
	MMC_ASSERT(rv == 0);
	op->eager = is_eager(&op->layout, config->eager_bytes);
	lay_out(op, (uint8_t *)memory + mmc_part_bytes(sizeof(*op)));
	own_block_is_here(op);
	mmc_barrier_init(&op->entry, config->rank, config->nranks);
	mmc_barrier_init(&op->release, config->rank, config->nranks);
	mmc_barrier_join(&op->entry);
	mmc_op_renew(op);
	mmc_liveness_init(&op->liveness, now_ns);
	mmc_op_ask_soon(op, now_ns);
	return op;
}

void mmc_op_ask_soon(struct mmc_op *op, uint64_t now_ns)
{
	uint64_t least_ns = op->config.reliable ? ASK_MIN_RELIABLE_NS
						: ASK_MIN_NS;

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
	mmc_op_step(op, MMC_OP_FAILURE);
}

void mmc_op_close_advert(struct mmc_op *op)
{
	if (op->generation != NULL)
		__atomic_store_n(op->generation, 0, __ATOMIC_SEQ_CST);
}

void mmc_op_all_done(struct mmc_op *op)
{
	if (op->state == MMC_OP_RETAINED)
		mmc_op_step(op, MMC_OP_ALL_DONE);
}

uint32_t mmc_op_awaited(const struct mmc_op *op)
{
	uint32_t nranks = op->config.nranks;
	const struct mmc_bitmap *present = &op->present;
	struct mmc_run missing;

	switch (op->state) {
	case MMC_OP_ENTRY:
		return mmc_barrier_passed(&op->entry)
			       ? MMC_PEER_ALL
			       : mmc_barrier_awaited(&op->entry);
	case MMC_OP_FLOW:
		missing = mmc_bitmap_next_clear(&present, 1, 0,
						op->layout.nchunks);
		if (missing.count == 0)
			return op->fetcher.nreading > 0 ? mmc_op_left(op)
							: MMC_PEER_ALL;
		return op->policy->repairer(
			op->config.rank, nranks,
			mmc_layout_owner(&op->layout, missing.first), 0);
	case MMC_OP_RELEASE:
		if (op->policy->release == MMC_RELEASE_RIGHT)
			return mmc_op_right(op);
		return mmc_barrier_passed(&op->release)
			       ? MMC_PEER_ALL
			       : mmc_barrier_awaited(&op->release);
	default:
		return MMC_PEER_ALL;
	}
}

uint32_t mmc_op_late(const struct mmc_op *op)
{
	if (op->state != MMC_OP_ENTRY || mmc_barrier_passed(&op->entry))
		return MMC_PEER_ALL;
	return mmc_barrier_awaited_joined(&op->entry)
		       ? op->late
		       : mmc_barrier_awaited(&op->entry);
}
