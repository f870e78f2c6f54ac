/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/threads/notify.h"

#include "engine/threads/threads.h"

void mmc_engine_expect_notification(struct mmc_engine *engine)
{
	engine->nexpected++;
}

void mmc_engine_notify(struct mmc_engine *engine)
{
	engine->nexpected--;
	mmc_engine_tell(engine);
}

void mmc_engine_tell(struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;

	pthread_mutex_lock(&threads->mutex);
	threads->nended++;
	pthread_cond_broadcast(&threads->ended);
	pthread_mutex_unlock(&threads->mutex);
}
