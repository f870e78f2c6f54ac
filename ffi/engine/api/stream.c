/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "engine/breakdown.h"
#include "engine/refusal.h"
#include "engine/remote/calls.h"
#include "engine/remote/requests.h"
#include "engine/spares.h"
#include "engine/threads/callers.h"
#include "engine/tracing.h"
#include "support/error.h"

/*
 * Writes a free index of the team's `streams`, which grows if it is full. Returns 0 or
 * -MMC_ENOMEM.
 */
static int find_index(struct mmc_team *team, uint32_t *index)
{
	uint32_t nstreams = team->nstreams;
	struct mmc_stream **grown;

	for (uint32_t i = 0; i < nstreams; i++)
		if (team->streams[i] == NULL) {
			*index = i;
			return 0;
		}
	grown = realloc(team->streams, (nstreams + 1) * sizeof(*grown));
	if (grown == NULL)
		return -MMC_ENOMEM;
	grown[nstreams] = NULL;
	team->streams = grown;
	team->nstreams = nstreams + 1;
	*index = nstreams;
	return 0;
}

/* Inserts a stream into `by_channel`, where datagrams find it. */
static int enlist(struct mmc_team *team, struct mmc_stream *stream)
{
	uint32_t place = mmc_team_channel_index(
		team, mmc_epochs_channel(&stream->epochs));
	struct mmc_stream **grown =
		realloc(team->by_channel, (team->nopen + 1) * sizeof(*grown));

	if (grown == NULL)
		return -MMC_ENOMEM;
	memmove(&grown[place + 1], &grown[place],
		(team->nopen - place) * sizeof(*grown));
	grown[place] = stream;
	team->by_channel = grown;
	team->nopen++;
	return 0;
}

/* Removes a stream from `by_channel`. */
static void delist(struct mmc_team *team, const struct mmc_stream *stream)
{
	uint32_t place = 0;

	while (team->by_channel[place] != stream)
		place++;
	team->nopen--;
	memmove(&team->by_channel[place], &team->by_channel[place + 1],
		(team->nopen - place) * sizeof(*team->by_channel));
}

/*
 * Sets the endpoint's timeout to the shortest one of the team and its streams: within
 * that time the driver must have made a broken connection anew.
 */
static void limit_silence(struct mmc_team *team)
{
	uint64_t least_ns = team->options.timeout_ns;

	for (uint32_t i = 0; i < team->nopen; i++)
		least_ns = mmc_min_u64(least_ns,
				       team->by_channel[i]->options.timeout_ns);
	team->endpoint->timeout_ns = least_ns;
}

static int check_options(const struct mmc_stream_options *options)
{
	if (options->repair > MMC_REPAIR_READ || options->timeout_ns == 0 ||
	    options->code_data > MMC_CODE_DATA_MAX ||
	    options->code_parity > MMC_CODE_PARITY_MAX) {
		mmc_error_set("invalid options: repair strategy %u, "
			      "timeout %llu ns, code %u,%u",
			      options->repair,
			      (unsigned long long)options->timeout_ns,
			      options->code_data, options->code_parity);
		return -MMC_EINVAL;
	}
	return 0;
}

/* Makes a stream one of the team's. Fails with the team's error if that is broken. */
static int add_stream(struct mmc_team *team, struct mmc_stream *stream)
{
	int rv = mmc_engine_enter(team->engine);

	if (rv != 0)
		return rv;
	if (team->poison.error != MMC_OK) {
		mmc_team_set_last_error(team);
		rv = -(int)team->poison.error;
	}
	if (rv == 0)
		rv = find_index(team, &stream->index);
	if (rv == 0)
		rv = enlist(team, stream);
	if (rv == 0 && mmc_team_is_remote(team)) {
		rv = mmc_remote_stream_create(stream);
		if (rv != 0)
			delist(team, stream);
	}
	if (rv == 0) {
		team->streams[stream->index] = stream;
		limit_silence(team);
		mmc_team_guard(team);
	}
	mmc_engine_leave(team->engine);
	return rv;
}

/* Allocates what a stream holds until it is closed. */
static int begin(struct mmc_stream *stream)
{
	const struct mmc_team_options *team = &stream->team->options;

	stream->epochs_memory = malloc(mmc_epochs_bytes(team->nranks));
	if (stream->epochs_memory == NULL)
		return -MMC_ENOMEM;
	mmc_epochs_init(&stream->epochs, stream->epochs_memory,
			stream->options.channel, team->rank, team->nranks,
			&stream->counters);
	/* Of each kind, one more than is true may be forged. */
	if (mmc_parking_init(&stream->parking, team->chunk_bytes,
			     MMC_PARKED_EACH_MAX) != 0)
		return -MMC_ENOMEM;
	return mmc_parking_init(&stream->parked_parts, MMC_PART_BYTES,
				MMC_PARTS_MAX + 1);
}

/* Frees a stream and what begin() has allocated. */
static void end(struct mmc_stream *stream)
{
	mmc_parking_close(&stream->parked_parts);
	mmc_parking_close(&stream->parking);
	free(stream->epochs_memory);
	free(stream);
}

int mmc_stream_create(struct mmc_team *team,
		      const struct mmc_stream_options *options,
		      struct mmc_stream **stream)
{
	struct mmc_stream *new;
	int rv = check_options(options);

	if (rv != 0)
		return rv;
	new = calloc(1, sizeof(*new));
	if (new == NULL)
		return -MMC_ENOMEM;
	new->team = team;
	new->options = *options;
	new->deadline_ns = MMC_NEVER_NS;
	rv = begin(new);
	if (rv == 0)
		rv = add_stream(team, new);
	if (rv != 0) {
		end(new);
		return rv;
	}
	*stream = new;
	return 0;
}

void mmc_stream_close(struct mmc_stream *stream)
{
	struct mmc_team *team = stream->team;

	if (mmc_engine_enter(team->engine) != 0)
		return;
	team->streams[stream->index] = NULL;
	delist(team, stream);
	limit_silence(team);
	mmc_team_guard(team);
	if (mmc_team_is_remote(team))
		mmc_remote_close_stream(stream);
	if (team->latest_stream == stream)
		team->latest_stream = NULL;
	mmc_stream_drop_requests(stream);
	mmc_tracing_end(stream);
	mmc_engine_leave(team->engine);
	end(stream);
}

int mmc_stream_set_trace(struct mmc_stream *stream, struct mmc_trace *trace,
			 uint32_t track)
{
	int rv = mmc_engine_enter(stream->team->engine);

	if (rv != 0)
		return rv;
	rv = mmc_tracing_begin(stream, trace, track);
	mmc_engine_leave(stream->team->engine);
	return rv;
}

void mmc_stream_leave(struct mmc_stream *stream)
{
	uint32_t final;

	if (mmc_engine_enter(stream->team->engine) != 0)
		return;
	if (mmc_team_is_remote(stream->team)) {
		stream->leaves = true;
		mmc_remote_post_queued(stream);
		mmc_engine_leave(stream->team->engine);
		return;
	}
	final = mmc_epochs_last(&stream->epochs);
	for (const struct mmc_request *queued = stream->queue; queued != NULL;
	     queued = queued->next)
		final++;
	mmc_epochs_leave(&stream->epochs, final);
	mmc_engine_leave(stream->team->engine);
}

void mmc_stream_fail(struct mmc_stream *stream, int error)
{
	struct mmc_poison poison = {
		.error = (enum mmc_error) - error,
		.culprit = stream->team->options.rank,
	};

	if (mmc_engine_enter(stream->team->engine) != 0)
		return;
	if (mmc_team_is_remote(stream->team)) {
		mmc_remote_stream_fail(stream, error);
	} else {
		poison.epoch = mmc_epochs_last(&stream->epochs);
		mmc_epochs_poison(&stream->epochs, poison, true);
		stream->needs_poll = true;
	}
	mmc_engine_leave(stream->team->engine);
}

uint32_t mmc_stream_unicast_epoch(struct mmc_stream *stream)
{
	if (mmc_team_is_remote(stream->team))
		return __atomic_load_n(&stream->unicast_epoch,
				       __ATOMIC_RELAXED);
	return mmc_epochs_unicast_epoch(&stream->epochs);
}

void mmc_stream_unicast_reason(struct mmc_stream *stream,
			       struct mmc_unicast_reason *reason)
{
	uint64_t deaf;

	*reason = (struct mmc_unicast_reason){
		.epoch = mmc_stream_unicast_epoch(stream),
	};
	if (reason->epoch == 0)
		return;
	if (mmc_team_is_remote(stream->team)) {
		if (mmc_engine_enter(stream->team->engine) != 0)
			return;
		mmc_remote_stream_reason(stream, reason);
		mmc_engine_leave(stream->team->engine);
		return;
	}
	deaf = mmc_epochs_deaf(&stream->epochs);
	reason->rank = mmc_deaf_rank(deaf);
	reason->sender = mmc_deaf_sender(deaf);
}

void mmc_stream_failure(struct mmc_stream *stream, struct mmc_failure *failure)
{
	const struct mmc_poison poison =
		mmc_epochs_first_failure(&stream->epochs);

	if (mmc_team_is_remote(stream->team)) {
		*failure = (struct mmc_failure){ .error = 0 };
		if (mmc_engine_enter(stream->team->engine) != 0)
			return;
		mmc_remote_stream_failure(stream, failure);
		mmc_engine_leave(stream->team->engine);
		return;
	}
	mmc_team_set_last_error(stream->team);
	*failure = (struct mmc_failure){
		.error = -(int)poison.error,
		.epoch = poison.epoch,
		.culprit = poison.culprit,
	};
}
