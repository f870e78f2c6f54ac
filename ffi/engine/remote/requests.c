/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/remote/requests.h"

#include "drivers/remote/remote.h"
#include "engine/completion.h"
#include "engine/remote/calls.h"
#include "engine/remote/landing.h"
#include "engine/remote/sharing.h"
#include "engine/spares.h"

/* ---- posting ------------------------------------------------------------- */

static uint32_t free_number(const struct mmc_posted *posted)
{
	uint32_t number = 0;

	while (posted->requests[number] != NULL)
		number++;
	return number;
}

/* Ends a request whose `failure` is set. */
static void end(struct mmc_request *request)
{
	mmc_remote_end_sharing(request);
	__atomic_store_n(&request->shown, false, __ATOMIC_RELAXED);
	mmc_request_finish(request);
	mmc_request_recycle(request);
}

/* Ends a request that has not been posted, or whose runner has ended. */
static void fail(struct mmc_request *request, int error)
{
	request->failure = (struct mmc_failure){
		.error = error,
		.epoch = request->failure.epoch,
		.culprit = request->stream->team->options.rank,
	};
	end(request);
}

/* Has the runner show which chunks of a posted request are present, if it can. */
static void post_show(struct mmc_request *request, uint32_t number)
{
	struct mmc_link *link =
		mmc_remote_link(request->stream->team->endpoint);
	struct mmc_offload_command command = {
		.kind = MMC_OFFLOAD_SHOW,
		.request = number,
	};

	if (link->runner.kind != MMC_RUNNER_FIRMWARE &&
	    mmc_remote_begin_showing(request, &command))
		mmc_link_post(link, &command);
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
		.partial = request->operation.partial,
	};

	request->failure.epoch = ++stream->nposted;
	mmc_remote_begin_landing(request);
	if (mmc_remote_place(request, &command) == 0) {
		command.request = free_number(team->posted);
		team->posted->requests[command.request] = request;
		team->posted->count++;
		mmc_link_post(mmc_remote_link(team->endpoint), &command);
		if (request->shown)
			post_show(request, command.request);
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
		if (request->landing != NULL)
			mmc_remote_land_rest(request);
		else
			mmc_remote_copy_out(request);
	}
	__atomic_store_n(&request->stream->unicast_epoch,
			 completion->unicast_epoch, __ATOMIC_RELAXED);
	end(request);
	post_all(team);
}

/* Takes in what the runner has shown of all requests of a team. */
static void take_landed(struct mmc_team *team)
{
	for (uint32_t i = 0; i < MMC_OFFLOAD_REQUESTS; i++) {
		struct mmc_request *request = team->posted->requests[i];

		if (request != NULL && request->shown)
			mmc_remote_land_shown(request);
	}
}

void mmc_remote_take_event(struct mmc_team *team, const struct mmc_event *event)
{
	if (event->kind == MMC_EVENT_LANDED)
		take_landed(team);
	else
		mmc_remote_take_ended(team, (const void *)event->bytes);
}

void mmc_remote_fail_all(struct mmc_team *team)
{
	for (uint32_t i = 0; i < MMC_OFFLOAD_REQUESTS; i++) {
		struct mmc_request *request = take(team, i);

		if (request != NULL)
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

void mmc_remote_show(struct mmc_request *request)
{
	uint32_t number;

	if (mmc_remote_is_shown(request) || !request->operation.partial ||
	    mmc_request_is_complete(request))
		return;
	__atomic_store_n(&request->shown, true, __ATOMIC_RELAXED);
	if (is_posted(request, &number))
		post_show(request, number);
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
		mmc_remote_end_sharing(request);
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
