/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/remote/sharing.h"

#include <string.h>

#include "drivers/remote/remote.h"
#include "engine/memory.h"
#include "engine/operation.h"
#include "support/bits.h"

/* ---- what lies in a bounce ------------------------------------------------ */

/* Returns the bytes of the blocks that arrive in a bounce: they lie at its beginning. */
static uint64_t bounced_bytes(const struct mmc_request *request)
{
	return request->bounced ? mmc_operation_total(
					  &request->operation,
					  request->stream->team->options.nranks)
				: 0;
}

/* Returns where the tables lie: behind the blocks, where a uint64_t may lie. */
static uint64_t tables_at(const struct mmc_request *request)
{
	return (bounced_bytes(request) + 7) / 8 * 8;
}

/* Returns the bytes of the tables that an operation's command refers to. */
static uint64_t table_bytes(const struct mmc_request *request)
{
	return mmc_operation_bytes(&request->operation,
				   request->stream->team->options.nranks);
}

/* Returns where the bits of chunks lie: behind the tables. */
static uint64_t bits_at(const struct mmc_request *request)
{
	return tables_at(request) + table_bytes(request);
}

/* Returns the bytes of these bits; 0 for a request that is not `partial`. */
static uint64_t bits_bytes(const struct mmc_request *request)
{
	return request->landing == NULL
		       ? 0
		       : mmc_bitmap_bytes(request->landing->present->nbits);
}

/* Takes a bounce with room for all that. Returns whether there is one. */
static bool take_bounce(struct mmc_request *request)
{
	request->bounce =
		mmc_remote_take_bounce(request->stream->team->endpoint,
				       bits_at(request) + bits_bytes(request));
	return request->bounce != NULL;
}

static struct mmc_offload_place place_in(const struct mmc_bounce *bounce,
					 uint64_t at)
{
	return (struct mmc_offload_place){
		.region = bounce->region,
		.offset_bytes = bounce->offset_bytes + at,
	};
}

/* ---- blocks and tables ---------------------------------------------------- */

/* Returns how many bytes from the first one of `recv` the last block ends. */
static uint64_t extent_bytes(const struct mmc_request *request)
{
	const struct mmc_operation *operation = &request->operation;
	uint32_t nranks = request->stream->team->options.nranks;
	uint64_t end = mmc_operation_total(operation, nranks);

	if (operation->offsets_bytes == NULL)
		return end;
	end = 0;
	for (uint32_t r = 0; r < nranks; r++)
		if (operation->blocks_bytes[r] > 0)
			end = mmc_max_u64(end,
					  operation->offsets_bytes[r] +
						  operation->blocks_bytes[r]);
	return end;
}

/*
 * Copies blocks between the user's memory and the bounce, where they lie one behind the
 * other: this rank's own block to it, or, if `out`, all others out of it.
 */
static void copy_blocks(struct mmc_request *request, bool out)
{
	const struct mmc_operation *operation = &request->operation;
	const struct mmc_team_options *team = &request->stream->team->options;
	uint8_t *bounced = request->bounce->bytes;

	for (uint32_t r = 0; r < team->nranks; r++) {
		uint64_t nbytes = mmc_operation_block(operation, r);
		uint8_t *user;

		if (nbytes == 0)
			continue;
		user = request->base + mmc_operation_offset(operation, r);
		if (out && r != team->rank)
			memcpy(user, bounced, nbytes);
		else if (!out && r == team->rank)
			memcpy(bounced, user, nbytes);
		bounced += nbytes;
	}
}

/* Writes the tables of an Allgatherv: the bytes of the blocks, and where they begin. */
static void write_tables(const struct mmc_request *request)
{
	const struct mmc_operation *operation = &request->operation;
	uint32_t nranks = request->stream->team->options.nranks;
	uint8_t *at = request->bounce->bytes + tables_at(request);
	uint64_t *tables = (uint64_t *)(void *)at;
	uint64_t packed = 0;

	for (uint32_t r = 0; r < nranks; r++) {
		tables[r] = operation->blocks_bytes[r];
		tables[nranks + r] =
			request->bounced ? packed
					 : mmc_operation_offset(operation, r);
		packed += operation->blocks_bytes[r];
	}
}

/* Returns whether the result lies in memory that the runner maps, and writes where. */
static bool find_shared(const struct mmc_request *request,
			struct mmc_offload_place *recv)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_region region;
	uint64_t offset_bytes;

	if (!mmc_team_find_shared(stream->team, request->base,
				  extent_bytes(request), &region,
				  &offset_bytes))
		return false;
	*recv = (struct mmc_offload_place){
		.region = mmc_remote_region(&region),
		.offset_bytes = offset_bytes,
	};
	return true;
}

int mmc_remote_place(struct mmc_request *request,
		     struct mmc_offload_command *command)
{
	uint32_t nranks = request->stream->team->options.nranks;
	bool shared = find_shared(request, &command->recv);

	request->bounced = !shared &&
			   mmc_operation_total(&request->operation, nranks) > 0;
	command->tables = MMC_REMOTE_NOWHERE;
	if (!shared)
		command->recv = MMC_REMOTE_NOWHERE;
	if (!request->bounced && table_bytes(request) == 0)
		return 0;
	if (!take_bounce(request))
		return -MMC_ENOMEM;
	if (request->bounced) {
		command->recv = place_in(request->bounce, 0);
		copy_blocks(request, false);
	}
	if (table_bytes(request) > 0) {
		command->tables = place_in(request->bounce, tables_at(request));
		write_tables(request);
	}
	return 0;
}

void mmc_remote_copy_out(struct mmc_request *request)
{
	if (request->bounced)
		copy_blocks(request, true);
}

uint64_t *mmc_remote_share_bits(struct mmc_request *request,
				struct mmc_offload_place *place)
{
	uint8_t *bits;

	if (request->bounce == NULL && !take_bounce(request))
		return NULL;
	bits = request->bounce->bytes + bits_at(request);
	*place = place_in(request->bounce, bits_at(request));
	memset(bits, 0, bits_bytes(request));
	return (uint64_t *)(void *)bits;
}

void mmc_remote_end_sharing(struct mmc_request *request)
{
	mmc_remote_give_bounce(request->stream->team->endpoint,
			       request->bounce);
	request->bounce = NULL;
	request->bounced = false;
}
