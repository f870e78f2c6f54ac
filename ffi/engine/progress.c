/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/progress.h"

#include "engine/advert.h"
#include "engine/arrival.h"
#include "engine/blocks.h"
#include "engine/breakdown.h"
#include "engine/completion.h"
#include "engine/engine.h"
#include "engine/landed.h"
#include "engine/parity.h"
#include "engine/placement.h"
#include "engine/receive.h"
#include "engine/refusal.h"
#include "engine/remote/requests.h"
#include "engine/request.h"
#include "engine/send.h"
#include "engine/survey.h"

/* Tells all streams of a team what an inquiry has found out about a rank's process. */
static void take_answer(struct mmc_team *team, const struct mmc_event *event)
{
	for (uint32_t i = 0; i < team->nstreams; i++) {
		struct mmc_stream *stream = team->streams[i];

		if (stream == NULL)
			continue;
		if (event->kind == MMC_EVENT_ALIVE)
			mmc_epochs_on_alive(&stream->epochs, event->source);
		else
			mmc_epochs_on_gone(&stream->epochs, event->source);
		stream->needs_poll = true;
	}
}

/* Takes in the first of `nevents` events, or a run of them. Returns how many it took. */
static unsigned take_event(struct mmc_team *team,
			   const struct mmc_event *events, unsigned nevents,
			   uint64_t now_ns)
{
	switch (events->kind) {
	case MMC_EVENT_DATAGRAM:
		return mmc_team_receive(team, events, nevents, now_ns);
	case MMC_EVENT_REFUSED:
		mmc_team_refuse(team, events, events->refusal, now_ns);
		break;
	case MMC_EVENT_PLACED:
		mmc_team_on_placed(team, events);
		break;
	case MMC_EVENT_ARRIVED:
		mmc_team_on_arrived(team, events, now_ns);
		break;
	case MMC_EVENT_READ:
		mmc_team_on_fetched(team, events, now_ns);
		break;
	case MMC_EVENT_BROKEN:
		mmc_team_break_down(team, events);
		break;
	case MMC_EVENT_ALIVE:
	case MMC_EVENT_GONE:
		take_answer(team, events);
		break;
	case MMC_EVENT_ENDED:
	case MMC_EVENT_LANDED:
		if (mmc_team_is_remote(team))
			mmc_remote_take_event(team, events);
		break;
	}
	return 1;
}

/* The most polls of one endpoint in one round. */
#define POLLS_MAX 256

/*
 * Joins an event to the one before it, if both tell of the same run. Of chunks, both events
 * must tell of full ones.
 */
static inline bool join(struct mmc_event *before, const struct mmc_event *event,
			uint32_t chunk_bytes)
{
	uint32_t count = before->count;

	if (event->kind != before->kind)
		return false;
	if (event->kind == MMC_EVENT_PLACED) {
		if (event->cookie != before->cookie + count)
			return false;
	} else if (event->kind != MMC_EVENT_ARRIVED ||
		   event->first != before->first + count ||
		   event->cookie != before->cookie ||
		   event->source != before->source ||
		   event->nbytes != chunk_bytes ||
		   before->nbytes != chunk_bytes) {
		return false;
	}
	before->count = count + event->count;
	return true;
}

/*
 * Fetches events, and returns their number. A driver whose poll() returns few at a time is
 * polled until there are none, or as many as it keeps: a round for each would look at all
 * operations each time, and runs of chunks would be cut.
 */
static unsigned fetch_events(struct mmc_engine *engine, struct mmc_team *team)
{
	struct mmc_endpoint *endpoint = team->endpoint;
	uint32_t chunk_bytes = team->options.chunk_bytes;
	uint32_t kept = endpoint->kept_events;
	unsigned nmax = kept > 0 ? mmc_min_u32(kept, MMC_EVENTS_MAX)
				 : MMC_EVENTS_MAX;
	unsigned npolls = kept > 0 ? POLLS_MAX : 1;
	struct mmc_event *next = engine->events;

	for (; npolls > 0 && nmax > 0; npolls--) {
		int polled = endpoint->driver->poll(endpoint, next, nmax);

		/* If poll() fails, the operations' timeouts notice that. */
		if (polled <= 0)
			break;
		if (polled == 1 && next > engine->events &&
		    join(next - 1, next, chunk_bytes))
			continue;
		next += polled;
		nmax -= (unsigned)polled;
	}
	return (unsigned)(next - engine->events);
}

/*
 * Takes in one team's events. Returns their number, and writes to `nrefused` how many of
 * them were refused.
 */
static unsigned take_events(struct mmc_engine *engine, struct mmc_team *team,
			    uint64_t now_ns, uint64_t *nrefused)
{
	unsigned nevents = fetch_events(engine, team);
	uint64_t nrefused_before = team->nrefused;

	for (unsigned i = 0; i < nevents;)
		i += take_event(team, &engine->events[i], nevents - i, now_ns);
	if (team->fetches.nwaiting > 0)
		mmc_team_fetch_waiting(team);
	*nrefused = team->nrefused - nrefused_before;
	return nevents;
}

/*
 * Breaks the team down at once if a datagram could not be sent: no repair makes up for it.
 */
static void check_sent(struct mmc_team *team, int rv)
{
	const struct mmc_event broken = {
		.kind = MMC_EVENT_BROKEN,
		.source = MMC_PEER_NONE,
		.error = rv,
	};

	if (rv < 0)
		mmc_team_break_down(team, &broken);
}

/* Sends a control message, or those that carry all parts of its blocks. */
static int send_control(struct mmc_stream *stream,
			const struct mmc_request *request,
			const struct mmc_action *action,
			const struct mmc_actions *actions)
{
	const struct mmc_letter letter = {
		.bytes = actions->arena + action->offset,
		.nbytes = action->nbytes,
	};

	if (action->run.count > 0)
		return mmc_request_send_blocks(request, action, &letter);
	return mmc_stream_send_control(stream, action->peer, &letter, 1);
}

/* Carries out one action: see enum mmc_action_kind. */
static void perform(struct mmc_stream *stream, const struct mmc_action *action,
		    const struct mmc_actions *actions)
{
	struct mmc_endpoint *endpoint = stream->team->endpoint;
	struct mmc_request *request =
		action->op == NULL ? NULL
				   : mmc_stream_request(stream, action->op);

	switch (action->kind) {
	case MMC_ACTION_CONTROL:
		check_sent(stream->team,
			   send_control(stream, request, action, actions));
		break;
	case MMC_ACTION_SEND:
	case MMC_ACTION_PARITY:
		check_sent(stream->team, mmc_request_send(request, action));
		mmc_op_on_sent(action->op, action->run.count);
		break;
	case MMC_ACTION_MEND:
		if (mmc_stream_may_code(stream))
			mmc_request_mend(request, action);
		break;
	case MMC_ACTION_DONE:
		mmc_request_complete(request, action->retain);
		break;
	case MMC_ACTION_FAILED:
		mmc_request_fail(request);
		break;
	case MMC_ACTION_CLOSED:
		mmc_request_close(request);
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
 * Polls a stream once, if an event or its deadline requires that, and carries out the
 * actions. Returns whether there were any. `backlog` says that events may be waiting.
 */
static bool poll_stream(struct mmc_engine *engine, struct mmc_stream *stream,
			bool backlog, uint64_t now_ns)
{
	struct mmc_actions *actions = &engine->actions;

	if (!stream->needs_poll && now_ns < stream->deadline_ns)
		return false;
	mmc_epochs_set_backlog(&stream->epochs, backlog);
	mmc_actions_init(actions, stream->team->options.checksum);
	mmc_epochs_poll(&stream->epochs, now_ns, actions);
	for (uint32_t i = 0; i < actions->count; i++)
		perform(stream, &actions->items[i], actions);
	mmc_stream_start_queued(stream, now_ns);
	mmc_stream_tell_landed(stream);
	stream->needs_poll = actions->count > 0;
	stream->deadline_ns = mmc_epochs_deadline(&stream->epochs);
	return stream->needs_poll;
}

/* Makes one round of progress for a team. Returns whether anything happened. */
static bool progress_team(struct mmc_engine *engine, struct mmc_team *team)
{
	uint64_t now_ns = mmc_team_now_ns(team);
	uint64_t nrefused;
	unsigned nevents = take_events(engine, team, now_ns, &nrefused);
	/*
	 * After an event more may be waiting, so nobody can be called silent. But
	 * refused datagrams announce nothing, lest a flood of them put off requests.
	 */
	bool backlog = nevents > nrefused ||
		       (nrefused == 0 && team->endpoint->lags);
	bool busy = nevents > 0;

	/* The device must be ready before a stream tells others that they may send. */
	if (team->endpoint->places_by_itself)
		mmc_team_begin_placement(team);
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

void mmc_team_settle(struct mmc_team *team)
{
	uint64_t now_ns = mmc_team_now_ns(team);

	for (uint32_t i = 0; i < team->nstreams; i++)
		if (team->streams[i] != NULL && team->streams[i]->needs_poll &&
		    mmc_epochs_all_ended(&team->streams[i]->epochs))
			poll_stream(team->engine, team->streams[i], true,
				    now_ns);
}

/*
 * Returns when something is due, on the endpoint's clock: 0 if a stream needs a poll
 * now, MMC_NEVER_NS if nothing ever is due.
 */
static uint64_t team_deadline(const struct mmc_team *team)
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
				stream->needs_poll ? 0 : stream->deadline_ns);
	}
	return at_ns;
}

uint64_t mmc_team_idle_ns(const struct mmc_team *team)
{
	uint64_t at_ns = team_deadline(team);
	uint64_t now_ns;

	if (at_ns == MMC_NEVER_NS)
		return MMC_NEVER_NS;
	now_ns = mmc_team_now_ns(team);
	return at_ns > now_ns ? at_ns - now_ns : 0;
}

uint64_t mmc_engine_idle_ns(const struct mmc_engine *engine)
{
	uint64_t idle_ns = MMC_NEVER_NS;

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (team->connected)
			idle_ns = mmc_min_u64(idle_ns, mmc_team_idle_ns(team));
	return idle_ns;
}

uint64_t mmc_engine_coalescing_ns(const struct mmc_engine *engine)
{
	uint64_t time_ns = MMC_NEVER_NS;

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		for (uint32_t i = 0; i < team->nstreams; i++)
			if (team->streams[i] != NULL)
				time_ns = mmc_min_u64(
					time_ns,
					mmc_epochs_coalescing_ns(
						&team->streams[i]->epochs));
	return time_ns == MMC_NEVER_NS ? 0 : time_ns;
}

bool mmc_engine_has_pending(const struct mmc_engine *engine)
{
	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next) {
		if (mmc_team_is_remote(team) && team->posted->count > 0)
			return true;
		for (uint32_t i = 0; i < team->nstreams; i++) {
			const struct mmc_stream *stream = team->streams[i];

			if (stream != NULL &&
			    !mmc_epochs_all_ended(&stream->epochs))
				return true;
		}
	}
	return false;
}

bool mmc_engine_progress(struct mmc_engine *engine)
{
	bool busy = mmc_engine_take_tasks(engine);

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (team->connected)
			busy |= progress_team(engine, team);
	return busy;
}

uint64_t mmc_engine_step(struct mmc_engine *engine)
{
	uint64_t at_ns = MMC_NEVER_NS;

	while (mmc_engine_progress(engine))
		;
	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next)
		if (team->connected)
			at_ns = mmc_min_u64(at_ns, team_deadline(team));
	return at_ns;
}

bool mmc_engine_rearm(struct mmc_engine *engine, bool all)
{
	bool come = mmc_engine_arm_coder(engine, all);

	for (struct mmc_team *team = engine->teams; team != NULL;
	     team = team->next) {
		const struct mmc_driver *driver = team->endpoint->driver;

		if ((all ? team->connected : mmc_team_is_attended(team)) &&
		    driver->arm != NULL)
			come |= driver->arm(team->endpoint);
	}
	return come;
}
