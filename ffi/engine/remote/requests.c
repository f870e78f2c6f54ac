/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/remote/requests.h"

#include <string.h>

#include "drivers/remote/remote.h"
#include "engine/completion.h"
#include "engine/memory.h"
#include "engine/operation.h"
#include "engine/remote/calls.h"
#include "engine/spares.h"
#include "support/bits.h"

/* ---- memory -------------------------------------------------------------- */

/* Returns the bytes of the tables that an operation's command refers to. */
static uint64_t table_bytes(const struct mmc_request *request)
{
	return mmc_operation_bytes(&request->operation,
				   request->stream->team->options.nranks);
}

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
 * Copies blocks between the user's memory and the bounce buffer, where they lie one
 * behind the other: this rank's own block to it, or, if `out`, all others out of it.
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

/*
 * Writes the tables of an Allgatherv to `at`: the bytes of the blocks, and where they
 * begin. In a bounce buffer they lie one behind the other.
 */
static void write_tables(const struct mmc_request *request, bool bounced,
			 uint8_t *at)
{
	const struct mmc_operation *operation = &request->operation;
	uint32_t nranks = request->stream->team->options.nranks;
	uint64_t *tables = (uint64_t *)(void *)at;
	uint64_t packed = 0;

	for (uint32_t r = 0; r < nranks; r++) {
		tables[r] = operation->blocks_bytes[r];
		tables[nranks + r] =
			bounced ? packed : mmc_operation_offset(operation, r);
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

/*
 * Finds or makes the shared memory for a request, and writes to `command` where it is.
 * Returns 0 or a negative error.
 */
static int place(struct mmc_request *request,
		 struct mmc_offload_command *command)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	uint64_t tables = table_bytes(request);
	bool bounced = !find_shared(request, &command->recv);
	uint64_t bounced_bytes =
		bounced ? mmc_operation_total(&request->operation,
					      team->options.nranks)
			: 0;
	/* The tables lie behind the blocks, where a uint64_t may lie. */
	uint64_t tables_at = (bounced_bytes + 7) / 8 * 8;

	command->tables = MMC_REMOTE_NOWHERE;
	if (bounced)
		command->recv = MMC_REMOTE_NOWHERE;
	if (bounced_bytes + tables == 0)
		return 0;
	request->bounce =
		mmc_remote_take_bounce(team->endpoint, tables_at + tables);
	if (request->bounce == NULL)
		return -MMC_ENOMEM;
	if (bounced_bytes > 0) {
		command->recv.region = request->bounce->region;
		command->recv.offset_bytes = request->bounce->offset_bytes;
		copy_blocks(request, false);
	}
	if (tables > 0) {
		command->tables.region = request->bounce->region;
		command->tables.offset_bytes =
			request->bounce->offset_bytes + tables_at;
		write_tables(request, bounced,
			     request->bounce->bytes + tables_at);
	}
	request->bounced = bounced_bytes > 0;
	return 0;
}

/* ---- posting ------------------------------------------------------------- */

static uint32_t free_number(const struct mmc_posted *posted)
{
	uint32_t number = 0;

	while (posted->requests[number] != NULL)
		number++;
	return number;
}

/* Ends a request that has not been posted, or whose runner has ended. */
static void fail(struct mmc_request *request, int error)
{
	request->failure = (struct mmc_failure){
		.error = error,
		.epoch = request->failure.epoch,
		.culprit = request->stream->team->options.rank,
	};
	mmc_request_finish(request);
	mmc_request_recycle(request);
}

/* Posts a request, or fails it and poisons its stream if there is no memory for it. */
static void post(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_team *team = stream->team;
	struct mmc_offload_command command = {
		.kind = MMC_OFFLOAD_START,
		.stream = stream->index,
		.operation = request->operation.kind,
		.root = request->operation.root,
		.block_bytes = request->operation.block_bytes,
	};

	request->failure.epoch = ++stream->nposted;
	if (place(request, &command) == 0) {
		command.request = free_number(team->posted);
		team->posted->requests[command.request] = request;
		team->posted->count++;
		mmc_link_post(mmc_remote_link(team->endpoint), &command);
		return;
	}
	mmc_remote_stream_fail(stream, -MMC_ENOMEM);
	fail(request, -MMC_ENOMEM);
}

/* Tells the runner that this rank leaves the stream, once it has all operations. */
static void leave(struct mmc_stream *stream)
{
	if (!stream->leaves || stream->queue != NULL || stream->left)
		return;
	stream->left = true;
	mmc_remote_stream_leave(stream);
}

void mmc_remote_post_queued(struct mmc_stream *stream)
{
	struct mmc_team *team = stream->team;

	while (stream->queue != NULL) {
		struct mmc_request *request = stream->queue;
		bool broken = team->poison.error != MMC_OK;

		if (!broken && (request->operation.unready ||
				team->posted->count == MMC_OFFLOAD_REQUESTS))
			return;
		stream->queue = request->next;
		if (broken)
			fail(request, -(int)team->poison.error);
		else
			post(request);
	}
	leave(stream);
}

/* ---- ends ---------------------------------------------------------------- */

/* Takes a posted request out of the table. */
static struct mmc_request *take(struct mmc_team *team, uint32_t number)
{
	struct mmc_request *request = team->posted->requests[number];

	if (request == NULL)
		return NULL;
	team->posted->requests[number] = NULL;
	team->posted->count--;
	return request;
}

static void give_bounce(struct mmc_request *request)
{
	mmc_remote_give_bounce(request->stream->team->endpoint,
			       request->bounce);
	request->bounce = NULL;
	request->bounced = false;
}

static void post_all(struct mmc_team *team)
{
	for (uint32_t i = 0; i < team->nstreams; i++)
		if (team->streams[i] != NULL)
			mmc_remote_post_queued(team->streams[i]);
}

void mmc_remote_take_ended(struct mmc_team *team,
			   const struct mmc_offload_completion *completion)
{
	struct mmc_request *request = completion->request < MMC_OFFLOAD_REQUESTS
					      ? take(team, completion->request)
					      : NULL;
	uint32_t epoch;

	if (request == NULL)
		return;
	epoch = request->failure.epoch;
	request->failure = completion->failure;
	if (request->failure.error == 0) {
		request->failure.epoch = epoch;
		if (request->bounced)
			copy_blocks(request, true);
	}
	__atomic_store_n(&request->stream->unicast_epoch,
			 completion->unicast_epoch, __ATOMIC_RELAXED);
	give_bounce(request);
	mmc_request_finish(request);
	mmc_request_recycle(request);
	post_all(team);
}

void mmc_remote_fail_all(struct mmc_team *team)
{
	for (uint32_t i = 0; i < MMC_OFFLOAD_REQUESTS; i++) {
		struct mmc_request *request = take(team, i);

		if (request == NULL)
			continue;
		give_bounce(request);
		fail(request, -(int)team->poison.error);
	}
	post_all(team);
}

/* Takes a request out of its stream's queue. Returns whether it was there. */
static bool dequeue(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_request *before = NULL;

	for (struct mmc_request *at = stream->queue; at != NULL;
	     before = at, at = at->next) {
		if (at != request)
			continue;
		if (before == NULL)
			stream->queue = request->next;
		else
			before->next = request->next;
		if (request->next == NULL)
			stream->queue_last = before;
		return true;
	}
	return false;
}

/* Returns whether a request has been posted and not ended, and writes its number. */
static bool is_posted(const struct mmc_request *request, uint32_t *number)
{
	const struct mmc_posted *posted = request->stream->team->posted;

	for (*number = 0; *number < MMC_OFFLOAD_REQUESTS; ++*number)
		if (posted->requests[*number] == request)
			return true;
	return false;
}

void mmc_remote_cancel(struct mmc_request *request)
{
	struct mmc_stream *stream = request->stream;
	struct mmc_link *link = mmc_remote_link(stream->team->endpoint);
	struct mmc_offload_completion completion;
	uint32_t number;

	if (dequeue(request)) {
		mmc_remote_stream_fail(stream, -MMC_ECANCELED);
		fail(request, -MMC_ECANCELED);
		mmc_remote_post_queued(stream);
		return;
	}
	if (is_posted(request, &number))
		mmc_link_call(link, &(struct mmc_link_call){
					    .kind = MMC_OFFLOAD_CANCEL,
					    .request = number,
				    });
	while (!mmc_request_is_complete(request) &&
	       mmc_link_take(link, &completion))
		mmc_remote_take_ended(stream->team, &completion);
	if (mmc_request_is_complete(request))
		return;
	/* The runner has ended, or breaks the ABI; the next round fails all others. */
	link->broken = true;
	if (is_posted(request, &number))
		take(stream->team, number);
	give_bounce(request);
	fail(request, -MMC_EIO);
}

void mmc_remote_close_stream(struct mmc_stream *stream)
{
	struct mmc_team *team = stream->team;
	struct mmc_link *link = mmc_remote_link(team->endpoint);
	struct mmc_offload_completion completion;

	mmc_remote_stream_close(stream);
	/* Those of operations that had ended before: their numbers are free again. */
	while (mmc_link_take(link, &completion))
		mmc_remote_take_ended(team, &completion);
	for (uint32_t i = 0; i < MMC_OFFLOAD_REQUESTS; i++) {
		struct mmc_request *request = team->posted->requests[i];

		if (request == NULL || request->stream != stream)
			continue;
		take(team, i);
		link->ninflight--;
		give_bounce(request);
		request->next = stream->queue;
		stream->queue = request;
	}
}

void mmc_remote_waiting(struct mmc_request *request,
			struct mmc_waiting *waiting)
{
	uint32_t number;

	if (!is_posted(request, &number))
		return;
	mmc_link_call(mmc_remote_link(request->stream->team->endpoint),
		      &(struct mmc_link_call){
			      .kind = MMC_OFFLOAD_WAITING,
			      .request = number,
			      .answer = waiting,
			      .answer_bytes = sizeof(*waiting),
		      });
}
