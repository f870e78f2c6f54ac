/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/remote/landing.h"

#include <string.h>

#include "core/plan/landing.h"
#include "drivers/remote/remote.h"
#include "engine/landed.h"
#include "engine/operation.h"
#include "engine/remote/sharing.h"
#include "support/assert.h"
#include "support/bits.h"
#include "support/memory.h"

/* At the beginning of a `partial` request's memory; all that it needs lies behind it. */
struct state {
	struct mmc_layout layout;
	struct mmc_bitmap present;
	struct mmc_landing landing;
	const uint64_t *shown; /* the runner's bits; NULL: it shows none */
};

/* Returns the state of a request whose landing has begun. */
static struct state *state_of(const struct mmc_request *request)
{
	return request->memory;
}

/* ---- beginning ------------------------------------------------------------ */

/* Lays the blocks out as the runner does. The operation has been checked. */
static void lay_out(const struct mmc_team_options *team,
		    const struct mmc_operation *operation,
		    struct mmc_layout *layout)
{
	uint32_t chunk_bytes = team->chunk_bytes;
	int rv;

	if (operation->kind == MMC_ALLGATHERV)
		rv = mmc_layout_init_each(layout, team->nranks,
					  operation->blocks_bytes, chunk_bytes);
	else if (operation->kind == MMC_BCAST)
		rv = mmc_layout_init_sole(layout, team->nranks, operation->root,
					  operation->block_bytes, chunk_bytes);
	else
		rv = mmc_layout_init(layout, team->nranks,
				     operation->block_bytes, chunk_bytes);
	MMC_ASSERT(rv == 0);
}

/* Returns the ranks that have a block, be it an empty one. */
static struct mmc_run ranks_of(const struct mmc_team_options *team,
			       const struct mmc_operation *operation)
{
	return operation->kind == MMC_BCAST
		       ? (struct mmc_run){ operation->root, 1 }
		       : (struct mmc_run){ 0, team->nranks };
}

size_t mmc_remote_landing_bytes(const struct mmc_team_options *team,
				const struct mmc_operation *operation)
{
	uint32_t nblocks = ranks_of(team, operation).count;
	struct mmc_layout layout;

	if (!operation->partial)
		return 0;
	lay_out(team, operation, &layout);
	return mmc_part_bytes(sizeof(struct state)) +
	       mmc_part_bytes(mmc_layout_bytes(&layout)) +
	       mmc_part_bytes(mmc_bitmap_bytes(layout.nchunks)) +
	       mmc_part_bytes(mmc_landing_bytes(nblocks));
}

void mmc_remote_begin_landing(struct mmc_request *request)
{
	const struct mmc_team_options *team = &request->stream->team->options;
	const struct mmc_operation *operation = &request->operation;
	struct mmc_run ranks = ranks_of(team, operation);
	uint8_t *memory = request->memory;
	struct state *state;
	struct mmc_layout *layout;
	struct mmc_block own;
	uint8_t *part;

	if (!operation->partial)
		return;
	state = mmc_part_take(&memory, sizeof(*state));
	layout = &state->layout;
	lay_out(team, operation, layout);
	part = mmc_part_take(&memory, mmc_layout_bytes(layout));
	mmc_layout_tabulate(layout, part, operation->blocks_bytes);
	part = mmc_part_take(&memory, mmc_bitmap_bytes(layout->nchunks));
	mmc_bitmap_init(&state->present, (uint64_t *)(void *)part,
			layout->nchunks);
	own = mmc_layout_block(layout, team->rank);
	mmc_bitmap_set_run(&state->present,
			   (struct mmc_run){ own.first, own.nchunks });
	part = mmc_part_take(&memory, mmc_landing_bytes(ranks.count));
	mmc_landing_init(&state->landing, part, layout, &state->present, ranks,
			 team->rank);
	state->shown = NULL;
	__atomic_store_n(&request->landing, &state->landing, __ATOMIC_RELEASE);
}

bool mmc_remote_begin_showing(struct mmc_request *request,
			      struct mmc_offload_command *command)
{
	struct state *state = state_of(request);

	command->nchunks = state->layout.nchunks;
	state->shown = mmc_remote_share_bits(request, &command->bits);
	return state->shown != NULL;
}

/* ---- landing -------------------------------------------------------------- */

/* Copies the chunks of `run` from the bounce to the user's memory. */
static void copy_run(struct mmc_request *request, struct mmc_run run)
{
	const struct mmc_layout *layout = &state_of(request)->layout;
	const uint64_t *offsets_bytes = request->operation.offsets_bytes;

	while (run.count > 0) {
		uint32_t rank = mmc_layout_owner(layout, run.first);
		struct mmc_block block = mmc_layout_block(layout, rank);
		uint32_t place = run.first - block.first;
		uint32_t count = mmc_min_u32(run.count, block.nchunks - place);
		uint64_t at = (uint64_t)place * layout->chunk_bytes;
		uint64_t nbytes =
			mmc_min_u64((uint64_t)count * layout->chunk_bytes,
				    block.nbytes - at);
		uint64_t user_at = offsets_bytes == NULL ? block.offset_bytes
							 : offsets_bytes[rank];

		memcpy(request->base + user_at + at,
		       request->bounce->bytes + block.offset_bytes + at,
		       nbytes);
		run.first += count;
		run.count -= count;
	}
}

/* Has chunks land, none of which was present. */
static void land(struct mmc_request *request, struct mmc_run run)
{
	struct state *state = state_of(request);

	if (request->bounced)
		copy_run(request, run);
	mmc_bitmap_publish_run(&state->present, run);
	mmc_landing_add(&state->landing, run);
}

/* Returns the bits of word number `index` that stand for chunks. */
static uint64_t valid_bits(const struct mmc_bitmap *map, uint32_t index)
{
	uint32_t nbits = map->nbits - 64 * index;

	return nbits < 64 ? (UINT64_C(1) << nbits) - 1 : UINT64_MAX;
}

void mmc_remote_land_shown(struct mmc_request *request)
{
	struct state *state = state_of(request);
	const struct mmc_bitmap *present = &state->present;

	if (state->shown == NULL)
		return;
	for (uint32_t i = 0; i < (present->nbits + 63) / 64; i++) {
		/* Once it is loaded, the runner cannot change it any more. */
		uint64_t news =
			__atomic_load_n(&state->shown[i], __ATOMIC_ACQUIRE) &
			~present->words[i] & valid_bits(present, i);
		struct mmc_bitmap map = { .words = &news, .nbits = 64 };
		struct mmc_run run = { 0, 0 };

		do {
			run = mmc_bitmap_next_set(&map, run.first + run.count,
						  map.nbits);
			if (run.count > 0)
				land(request,
				     (struct mmc_run){ 64 * i + run.first,
						       run.count });
		} while (run.count > 0);
	}
	mmc_request_tell_landed(request);
}

void mmc_remote_land_rest(struct mmc_request *request)
{
	const struct mmc_bitmap *present = &state_of(request)->present;
	struct mmc_run run = { 0, 0 };

	do {
		run = mmc_bitmap_next_clear(&present, 1, run.first + run.count,
					    present->nbits);
		if (run.count > 0)
			land(request, run);
	} while (run.count > 0);
}
