/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/wait.h"

#include <sched.h>

#include "node/cross.h"
#include "node/failing.h"
#include "node/fill.h"
#include "node/forward.h"
#include "node/read.h"
#include "node/tracing.h"
#include "support/clock.h"
#include "support/timer.h"

/* How often a waiter asks whether the awaited process exists, or others have failed. */
#define LOOK_NS (20 * MMC_MS_NS)

/* How often the cursor is looked at before the processor is offered to others. */
#define LOOKS 100

/* A node leader that waits for the network looks this often whether members moved. */
#define LEADER_NS (200 * MMC_US_NS)

/* Returns what `member` has to move so that the first request goes on. */
static struct mmc_node_awaited awaited(const struct mmc_node_stream *stream,
				       uint32_t member,
				       struct mmc_cursor *cursor)
{
	struct mmc_node_line *line = &stream->lines[member];

	return (struct mmc_node_awaited){
		.cursor = cursor,
		.npieces = mmc_cursor_get(cursor),
		.rank = mmc_node_members(stream)[member],
		.entered = mmc_cursor_before(stream->first->first_piece,
					     mmc_cursor_get(&line->filled)),
	};
}

/* Returns the first other member that has not filled a piece; or this one. */
static uint32_t unfilled(const struct mmc_node_stream *stream, uint32_t piece)
{
	const struct mmc_node_request *first = stream->first;
	const uint32_t *members = mmc_node_members(stream);

	for (uint32_t i = 1; i < stream->node->nmembers; i++) {
		uint32_t member = (stream->member + i) % stream->node->nmembers;

		if (stream->map.nnodes == 1 &&
		    !mmc_node_is_verdict(first, piece) &&
		    !mmc_node_request_sends(first, members[member]))
			continue;
		if (!mmc_cursor_before(
			    piece,
			    mmc_cursor_get(&stream->lines[member].filled)))
			return member;
	}
	return stream->member;
}

/*
 * Returns who has to move so that a piece arrives: `member`, which has not filled it, or
 * the leader of the piece's rail if that is this member itself.
 */
static struct mmc_node_awaited
await_arrival(const struct mmc_node_stream *stream, uint32_t member)
{
	const struct mmc_node_request *first = stream->first;
	bool is_filled = member == stream->member;
	uint32_t rail = mmc_node_request_rail(first, stream->nread);
	struct mmc_node_awaited whom =
		awaited(stream, is_filled ? stream->leaders[rail] : member,
			mmc_node_source(first));

	whom.between = is_filled;
	/* A leader that forwards nothing can forward its piece now. */
	whom.moved = mmc_node_request_carries(first, stream->nread) &&
		     !mmc_node_is_forwarding(stream);
	return whom;
}

struct mmc_node_awaited
mmc_node_find_awaited(const struct mmc_node_stream *stream)
{
	struct mmc_node_awaited whom;
	uint32_t member;

	if (stream->nread == stream->nfilled &&
	    stream->first->operation.unready)
		return awaited(stream, stream->member,
			       &stream->lines[stream->member].filled);
	if (stream->nread == stream->nfilled) {
		/* The next slot is not free: a member has not read an older piece. */
		struct mmc_node_awaited slowest;
		struct mmc_node_line *line;

		mmc_node_least_read(stream, &member);
		line = &stream->lines[member];
		slowest = awaited(stream, member, &line->read);
		slowest.entered = mmc_cursor_before(
			slowest.npieces, mmc_cursor_get(&line->filled));
		slowest.moved = mmc_cursor_before(
			stream->nfilled,
			slowest.npieces + stream->options.nslots);
		return slowest;
	}
	member = unfilled(stream, stream->nread);
	if (stream->map.nnodes == 1 ||
	    mmc_node_request_enters(stream->first, stream->nread) ||
	    (mmc_node_leads(stream) && member != stream->member))
		whom = awaited(stream, member, &stream->lines[member].filled);
	else
		whom = await_arrival(stream, member);
	whom.moved |= mmc_cursor_before(stream->nread, whom.npieces);
	return whom;
}

/*
 * Looks for up to `spin_ns` whether the awaited member moves, which takes less time than
 * to sleep and be woken. Yields in between, lest that member waits for this processor.
 * Returns whether it has moved.
 */
static bool spin(const struct mmc_node_awaited *whom, uint64_t spin_ns)
{
	uint64_t until_ns;

	if (spin_ns == 0)
		return false;
	until_ns = mmc_clock_now_ns() + spin_ns;
	do {
		for (int i = 0; i < LOOKS; i++)
			if (mmc_cursor_get(whom->cursor) != whom->npieces)
				return true;
		sched_yield();
	} while (mmc_clock_now_ns() < until_ns);
	return false;
}

/*
 * Returns how long a waiter may sleep before it looks again. A node leader that waits for
 * another's piece is not woken when members fill the next one of its own.
 */
static uint64_t longest_sleep_ns(const struct mmc_node_stream *stream,
				 const struct mmc_node_awaited *whom)
{
	bool may_forward =
		mmc_node_leads(stream) &&
		mmc_cursor_before(stream->nforwarded, stream->nfilled);

	return whom->between && may_forward ? LEADER_NS : LOOK_NS;
}

/*
 * Sleeps until the awaited member moves, at most `limit_ns`. Returns when the caller
 * began to wait, before it looked for news without sleeping, if the stream is traced.
 */
static uint64_t sleep_on(const struct mmc_node_stream *stream,
			 const struct mmc_node_awaited *whom, uint64_t limit_ns)
{
	uint64_t begin_ns = 0;

	if (stream->tracing != NULL)
		begin_ns = mmc_clock_now_ns() - stream->options.spin_ns;
	mmc_cursor_sleep(whom->cursor, whom->npieces, limit_ns);
	return begin_ns;
}

void mmc_node_sleep(struct mmc_node_stream *stream, uint64_t limit_ns)
{
	struct mmc_node_awaited whom = mmc_node_find_awaited(stream);
	uint64_t longest_ns = longest_sleep_ns(stream, &whom);
	struct mmc_node_sleep slumber = {
		.first = stream->first,
		.epoch = stream->first->epoch,
		.rank = whom.rank,
		.entered = whom.entered,
	};
	bool is_long = stream->slept_for == whom.cursor &&
		       stream->slept_at == whom.npieces;
	bool sleeps;

	if (whom.entered && stream->tracing != NULL)
		mmc_node_tracing_entered(stream);
	if (mmc_node_leads(stream) && mmc_node_is_forwarding(stream)) {
		mmc_node_await_arrival(stream,
				       mmc_min_u64(limit_ns, LEADER_NS));
		return;
	}
	if (whom.moved)
		return;
	pthread_mutex_unlock(&stream->mutex);
	sleeps = !spin(&whom, is_long ? 0 : stream->options.spin_ns);
	if (sleeps)
		slumber.begin_ns = sleep_on(stream, &whom,
					    mmc_min_u64(limit_ns, longest_ns));
	pthread_mutex_lock(&stream->mutex);
	stream->counts.sleeps += sleeps;
	if (sleeps) {
		stream->slept_for = whom.cursor;
		stream->slept_at = whom.npieces;
	}
	if (sleeps && stream->tracing != NULL)
		mmc_node_tracing_slept(stream, &slumber);
}

/* Fails the stream because of the rank that it waits for. */
static void fail(struct mmc_node_request *request, int error, uint32_t culprit)
{
	struct mmc_node_stream *stream = request->stream;
	struct mmc_failure failure =
		mmc_node_failure(stream->first, error, culprit);

	mmc_node_fail(stream, &failure);
}

/* Counts the time since the last look at the clock, unless something has moved since. */
static void count_stalled(struct mmc_node_request *request, uint64_t now_ns)
{
	const struct mmc_node_stream *stream = request->stream;
	uint64_t elapsed_ns = mmc_observe(&request->observed_ns, now_ns);

	request->stalled_ns += elapsed_ns;
	if (request->nread != stream->nread ||
	    request->nfilled != stream->nfilled)
		request->stalled_ns = 0;
	request->nread = stream->nread;
	request->nfilled = stream->nfilled;
}

/* Returns whether a member leads its node on some rail. */
static bool is_leader(const struct mmc_node_stream *stream, uint32_t member)
{
	for (uint32_t rail = 0; rail < stream->options.nrails; rail++)
		if (stream->leaders[rail] == member)
			return true;
	return false;
}

/* Fails the stream if the process that it waits for has ended, or has left. */
static void check_life(struct mmc_node_request *request,
		       const struct mmc_node_awaited *whom)
{
	struct mmc_node_stream *stream = request->stream;
	const uint32_t *members = mmc_node_members(stream);

	for (uint32_t i = 0; i < stream->node->nmembers; i++) {
		if (i == stream->member)
			continue;
		/* A member that leaves while it is looked at has not entered either. */
		if (members[i] == whom->rank && !whom->entered &&
		    atomic_load(&stream->lines[i].left) != 0 &&
		    mmc_node_find_awaited(stream).npieces == whom->npieces)
			fail(request, -MMC_ELEFT, whom->rank);
		else if ((members[i] == whom->rank || is_leader(stream, i)) &&
			 !mmc_node_is_alive(stream->node, i))
			fail(request, -MMC_EGONE, members[i]);
		if (stream->failure.error != 0)
			return;
	}
}

void mmc_node_check_patience(struct mmc_node_request *request, uint64_t now_ns)
{
	struct mmc_node_stream *stream = request->stream;
	const struct mmc_node_stream_options *options = &stream->options;
	struct mmc_node_awaited whom = mmc_node_find_awaited(stream);
	uint64_t limit_ns = whom.entered ? options->late_timeout_ns
					 : options->entry_timeout_ns;

	count_stalled(request, now_ns);
	/* This rank waits for itself if its operation is not ready. */
	if (whom.moved || whom.rank == options->rank)
		return;
	if (now_ns - request->looked_ns >= LOOK_NS) {
		request->looked_ns = now_ns;
		check_life(request, &whom);
	}
	/* The node leader has its own patience with other nodes. */
	if (stream->failure.error != 0 || whom.between || limit_ns == 0 ||
	    request->stalled_ns < limit_ns)
		return;
	fail(request, whom.entered ? -MMC_ELATE : -MMC_ENOENTRY, whom.rank);
}
