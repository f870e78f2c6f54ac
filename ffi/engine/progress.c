/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/progress.h"

#include "engine/breakdown.h"
#include "engine/engine.h"
#include "engine/placement.h"
#include "engine/receive.h"
#include "engine/request.h"
#include "engine/send.h"
#include "engine/survey.h"

/* Tells all streams that the process of a rank exists, or has ended. */
static void take_finding(struct mmc_team *team, const struct mmc_event *event)
{
	for (uint32_t i = 0; i < team->nstreams; i++) {
		struct mmc_stream *stream = team->streams[i];

		if (stream == NULL)
			continue;
		if (event->kind == MMC_EVENT_ALIVE)
			mmc_epochs_on_alive(&stream->epochs, event->source);
		else
			mmc_epochs_on_gone(&stream->epochs, event->source);
		stream->stirred = true;
	}
}

/* Takes in one team's events. Returns their number. */
static unsigned take_events(struct mmc_engine *engine, struct mmc_team *team,
			    uint64_t now_ns)
{
	struct mmc_endpoint *endpoint = team->endpoint;
	int nevents = endpoint->driver->poll(endpoint, engine->events,
					     MMC_EVENTS_MAX);

	/* A broken socket brings no events: the operations' timeouts notice it. */
	for (int i = 0; i < nevents; i++) {
		const struct mmc_event *event = &engine->events[i];

		switch (event->kind) {
		case MMC_EVENT_DATAGRAM:
			mmc_team_receive(team, event, now_ns);
			break;
		case MMC_EVENT_PLACED:
			mmc_team_placed(team, event->cookie);
			break;
		case MMC_EVENT_READ:
			mmc_team_fetched(team, event, now_ns);
			break;
		case MMC_EVENT_BROKEN:
			mmc_team_break(team, event);
			break;
		case MMC_EVENT_ALIVE:
		case MMC_EVENT_GONE:
			take_finding(team, event);
			break;
		}
	}
	if (team->fetches.nwaiting > 0)
		mmc_team_fetch_waiting(team);
	return nevents > 0 ? (unsigned)nevents : 0;
}

/*
 * Breaks the team if a datagram cannot be sent: that is not a loss, and is reported at
 * once instead of by a timeout.
 */
static void check_sent(struct mmc_team *team, int rv)
{
	const struct mmc_event broken = {
		.kind = MMC_EVENT_BROKEN,
		.source = MMC_PEER_ALL,
		.error = rv,
	};

	if (rv < 0)
		mmc_team_break(team, &broken);
}

static void perform(struct mmc_stream *stream, const struct mmc_action *action,
		    const struct mmc_actions *actions)
{
	struct mmc_endpoint *endpoint = stream->team->endpoint;
	struct mmc_request *request =
		action->op == NULL ? NULL
				   : mmc_stream_request(stream, action->op);

	switch (action->kind) {
	case MMC_ACTION_CONTROL:
		check_sent(
			stream->team,
			mmc_stream_send_control(stream, action->peer,
						actions->arena + action->offset,
						action->nbytes));
		break;
	case MMC_ACTION_SEND:
		check_sent(stream->team, mmc_request_send(request, action));
		mmc_op_on_sent(action->op, action->run.count);
		break;
	case MMC_ACTION_DONE:
		mmc_request_done(request, action->retain);
		break;
	case MMC_ACTION_FAILED:
		mmc_request_failed(request);
		break;
	case MMC_ACTION_CLOSED:
		mmc_request_closed(request);
		break;
	case MMC_ACTION_READ_MAP:
	case MMC_ACTION_READ:
		mmc_request_fetch(request, action);
		break;
	case MMC_ACTION_REGISTER:
		mmc_request_register(request);
		break;
	case MMC_ACTION_INQUIRE:
		endpoint->driver->inquire(endpoint, action->peer);
		break;
	}
}

/*
 * Polls a stream once if an event or its deadline requires it. Returns whether there
 * were actions.
 */
static bool poll_stream(struct mmc_engine *engine, struct mmc_stream *stream,
			bool backlog, uint64_t now_ns)
{
	struct mmc_actions *actions = &engine->actions;

	if (!stream->stirred && now_ns < stream->deadline_ns)
		return false;
	stream->epochs.path.backlog = backlog;
	mmc_actions_init(actions, stream->team->options.checksum);
	mmc_epochs_poll(&stream->epochs, now_ns, actions);
	for (uint32_t i = 0; i < actions->count; i++)
		perform(stream, &actions->items[i], actions);
	mmc_stream_start_queued(stream, now_ns);
	stream->stirred = actions->count > 0;
	stream->deadline_ns = mmc_epochs_deadline(&stream->epochs);
	return stream->stirred;
}

static bool pass_team(struct mmc_engine *engine, struct mmc_team *team)
{
	uint64_t now_ns = mmc_team_now_ns(team);
	/* More events may be waiting: only a poll without any proves silence. */
	bool backlog = take_events(engine, team, now_ns) > 0;
	bool busy = backlog;

	for (uint32_t i = 0; i < team->nstreams; i++)
		if (team->streams[i] != NULL)
			busy |= poll_stream(engine, team->streams[i], backlog,
					    now_ns);
	if (team->options.zero_copy)
		mmc_team_begin_placement(team);
	if (team->survey != NULL)
		mmc_survey_answer(team);
	return busy;
}

uint64_t mmc_team_deadline(const struct mmc_team *team)
{
	const struct mmc_driver *driver = team->endpoint->driver;
	uint64_t at_ns = driver->deadline_ns != NULL
				 ? driver->deadline_ns(team->endpoint)
				 : MMC_NEVER_NS;

	for (uint32_t i = 0; i < team->nstreams; i++) {
		const struct mmc_stream *stream = team->streams[i];

		if (stream != NULL)
			at_ns = mmc_min_u64(
				at_ns,
				stream->stirred ? 0 : stream->deadline_ns);
	}
	return at_ns;
}

uint64_t mmc_engine_deadline(const struct mmc_engine *engine)
{
	uint64_t at_ns = MMC_NEVER_NS;

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (team->connected)
			at_ns = mmc_min_u64(at_ns, mmc_team_deadline(team));
	return at_ns;
}

bool mmc_engine_is_moving(const struct mmc_engine *engine)
{
	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		for (uint32_t i = 0; i < team->nstreams; i++) {
			const struct mmc_stream *stream = team->streams[i];

			if (stream != NULL &&
			    stream->epochs.done != stream->epochs.last)
				return true;
		}
	return false;
}

bool mmc_engine_progress(struct mmc_engine *engine)
{
	bool busy = false;

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (team->connected)
			busy |= pass_team(engine, team);
	return busy;
}

uint64_t mmc_engine_step(struct mmc_engine *engine)
{
	while (mmc_engine_progress(engine))
		;
	return mmc_engine_deadline(engine);
}

bool mmc_engine_rearm(struct mmc_engine *engine, bool all)
{
	bool come = false;

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next) {
		const struct mmc_driver *driver = team->endpoint->driver;

		if ((all ? team->connected : mmc_team_is_attended(team)) &&
		    driver->arm != NULL)
			come |= driver->arm(team->endpoint);
	}
	return come;
}
