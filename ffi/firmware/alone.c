/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements engine/threads for a processor that runs a single thread, which steps the
 * engine in a loop. The progress lock is always free, no other thread is to be woken, and
 * nobody else makes progress, so most of these functions do nothing. Stands for surveys and
 * traces, too, which the engine is built without.
 */
#include <stdlib.h>

#include "engine/engine.h"
#include "engine/survey.h"
#include "engine/threads/callers.h"
#include "engine/threads/notify.h"
#include "engine/threads/responder.h"
#include "engine/tracing.h"
#include "support/run_delay.h"

int mmc_engine_create_stepped(struct mmc_engine **engine)
{
	struct mmc_engine *new = calloc(1, sizeof(*new));

	if (new == NULL)
		return -MMC_ENOMEM;
	new->stepped = true;
	*engine = new;
	return 0;
}

void mmc_engine_destroy(struct mmc_engine *engine)
{
	free(engine);
}

int mmc_engine_enter(struct mmc_engine *engine)
{
	(void)engine;
	return 0;
}

void mmc_engine_leave(struct mmc_engine *engine)
{
	(void)engine;
}

void mmc_engine_pause(struct mmc_engine *engine)
{
	(void)engine;
}

/* Makes the progress that is possible now. Does not wait: the caller calls again. */
void mmc_engine_wait_for(struct mmc_engine *engine, const struct mmc_goal *goal,
			 uint64_t slice_ns)
{
	(void)goal;
	(void)slice_ns;
	mmc_engine_step(engine);
}

bool mmc_engine_follow(struct mmc_engine *engine, const struct mmc_goal *goal,
		       uint64_t slice_ns)
{
	(void)engine;
	(void)goal;
	(void)slice_ns;
	return false;
}

void mmc_engine_expect_notification(struct mmc_engine *engine)
{
	engine->nexpected++;
}

void mmc_engine_notify(struct mmc_engine *engine)
{
	engine->nexpected--;
}

void mmc_engine_tell(struct mmc_engine *engine)
{
	(void)engine;
}

int mmc_responder_watch(struct mmc_engine *engine, struct mmc_team *team)
{
	(void)engine;
	(void)team;
	return 0;
}

int mmc_responder_start(struct mmc_engine *engine)
{
	(void)engine;
	return 0;
}

void mmc_responder_forget(struct mmc_engine *engine, struct mmc_team *team)
{
	(void)engine;
	(void)team;
}

/* No other thread takes the processor from the engine. */
struct mmc_run_delay mmc_run_delay_look(void)
{
	return (struct mmc_run_delay){ .thread = NULL };
}

bool mmc_run_delay_since(const struct mmc_run_delay *before,
			 struct mmc_run_delay *delay)
{
	(void)before;
	(void)delay;
	return false;
}

/* Refuses surveys, which diagnose the hosts of a job. */
bool mmc_team_on_survey(struct mmc_team *team, uint32_t source,
			const struct mmc_header *header, const uint8_t *body,
			uint32_t nbytes, uint64_t now_ns)
{
	(void)team;
	(void)source;
	(void)header;
	(void)body;
	(void)nbytes;
	(void)now_ns;
	return false;
}

void mmc_survey_answer(struct mmc_team *team)
{
	(void)team;
}

void mmc_survey_free(struct mmc_survey *survey)
{
	(void)survey;
}

/* Only programs under an operating system trace their streams. */
int mmc_tracing_begin(struct mmc_stream *stream, struct mmc_trace *trace,
		      uint32_t track)
{
	(void)stream;
	(void)trace;
	(void)track;
	return -MMC_EINVAL;
}

void mmc_tracing_end(struct mmc_stream *stream)
{
	(void)stream;
}

/* The others are never called, since no stream is traced. */
void mmc_tracing_finish(const struct mmc_request *request)
{
	(void)request;
}

void mmc_tracing_note_repairs(const struct mmc_engine *engine)
{
	(void)engine;
}

void mmc_trace_add(struct mmc_trace *trace, const struct mmc_trace_event *event)
{
	(void)trace;
	(void)event;
}
