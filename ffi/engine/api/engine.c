/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/progress.h"
#include "engine/threads/callers.h"
#include "engine/threads/coder.h"
#include "engine/threads/responder.h"
#include "engine/threads/threads.h"
#include "support/error.h"

/* To be raised with every change to the wire format or to the state machine. */
#define WIRE_VERSION 11

uint32_t mmc_wire_version(void)
{
	return WIRE_VERSION;
}

static struct mmc_engine *new_engine(void)
{
	struct mmc_engine *engine = calloc(1, sizeof(*engine));

	if (engine == NULL)
		return NULL;
	engine->threads = mmc_threads_new();
	if (engine->threads != NULL)
		return engine;
	free(engine);
	return NULL;
}

static void free_engine(struct mmc_engine *engine)
{
	mmc_threads_free(engine->threads);
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

int mmc_engine_create_driven(struct mmc_engine **engine, int *wake_fd)
{
	int rv = mmc_engine_create_stepped(engine);

	if (rv != 0)
		return rv;
	*wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(*engine)->threads->wake_fd = *wake_fd;
	if (*wake_fd >= 0)
		return 0;
	mmc_error_set("eventfd: %s", strerror(errno));
	free_engine(*engine);
	return -MMC_EIO;
}

int mmc_engine_create(struct mmc_engine **engine)
{
	struct mmc_engine *new = new_engine();
	int rv;

	if (new == NULL)
		return -MMC_ENOMEM;
	rv = mmc_responder_open(new);
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
	if (engine == NULL || !mmc_threads_may_enter(engine->threads))
		return;
	if (!engine->stepped) {
		/* The responder uses the coder, and the coder wakes the responder. */
		mmc_responder_stop(engine);
		mmc_coder_stop(engine);
		mmc_responder_close(engine);
	} else if (engine->threads->wake_fd >= 0) {
		close(engine->threads->wake_fd);
	}
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
	struct mmc_threads *threads = engine->threads;

	if (!mmc_threads_may_enter(threads))
		return -MMC_EFORKED;
	pthread_mutex_lock(&threads->mutex);
	while (threads->nended == *nended && !threads->roused)
		pthread_cond_wait(&threads->ended, &threads->mutex);
	*nended = threads->nended;
	threads->roused = false;
	pthread_mutex_unlock(&threads->mutex);
	return 0;
}

void mmc_engine_rouse(struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;

	if (!mmc_threads_may_enter(threads))
		return;
	pthread_mutex_lock(&threads->mutex);
	threads->roused = true;
	pthread_cond_broadcast(&threads->ended);
	pthread_mutex_unlock(&threads->mutex);
}
