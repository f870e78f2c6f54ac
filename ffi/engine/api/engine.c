/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <unistd.h>

#include "engine/callers.h"
#include "engine/engine.h"
#include "engine/progress.h"
#include "engine/responder.h"
#include "support/error.h"

/* To be raised with every change to the wire format or to the state machine. */
#define WIRE_VERSION 9

uint32_t mmc_wire_version(void)
{
	return WIRE_VERSION;
}

static struct mmc_engine *new_engine(void)
{
	struct mmc_engine *engine = calloc(1, sizeof(*engine));
	pthread_condattr_t monotonic;

	if (engine == NULL)
		return NULL;
	engine->pid = getpid();
	pthread_mutex_init(&engine->mutex, NULL);
	pthread_cond_init(&engine->handover, NULL);
	pthread_cond_init(&engine->ended, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&engine->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return engine;
}

static void free_engine(struct mmc_engine *engine)
{
	pthread_cond_destroy(&engine->news);
	pthread_cond_destroy(&engine->ended);
	pthread_cond_destroy(&engine->handover);
	pthread_mutex_destroy(&engine->mutex);
	free(engine);
}

int mmc_engine_create_stepped(struct mmc_engine **engine)
{
	struct mmc_engine *new = new_engine();

	if (new == NULL)
		return -MMC_ENOMEM;
	new->stepped = true;
	*engine = new;
	return 0;
}

int mmc_engine_create(struct mmc_engine **engine)
{
	struct mmc_engine *new = new_engine();
	int rv;

	if (new == NULL)
		return -MMC_ENOMEM;
	rv = mmc_responder_start(new);
	if (rv != 0) {
		free_engine(new);
		return rv;
	}
	*engine = new;
	return 0;
}

void mmc_engine_destroy(struct mmc_engine *engine)
{
	/* In a child of fork() neither the thread nor a holder of the lock exists. */
	if (engine == NULL || engine->pid != getpid())
		return;
	if (!engine->stepped)
		mmc_responder_stop(engine);
	free_engine(engine);
}

void mmc_engine_make_progress(struct mmc_engine *engine)
{
	if (mmc_engine_enter(engine) != 0)
		return;
	while (mmc_engine_progress(engine))
		;
	mmc_engine_leave(engine);
}

int mmc_engine_await(struct mmc_engine *engine, uint64_t *nended)
{
	if (getpid() != engine->pid)
		return -MMC_EFORKED;
	pthread_mutex_lock(&engine->mutex);
	while (engine->nended == *nended && !engine->roused)
		pthread_cond_wait(&engine->ended, &engine->mutex);
	*nended = engine->nended;
	engine->roused = false;
	pthread_mutex_unlock(&engine->mutex);
	return 0;
}

void mmc_engine_rouse(struct mmc_engine *engine)
{
	if (getpid() != engine->pid)
		return;
	pthread_mutex_lock(&engine->mutex);
	engine->roused = true;
	pthread_cond_broadcast(&engine->ended);
	pthread_mutex_unlock(&engine->mutex);
}
