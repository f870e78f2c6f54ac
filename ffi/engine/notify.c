/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/notify.h"

#include <unistd.h>

void mmc_engine_expect(struct mmc_engine *engine)
{
	engine->nexpected++;
}

void mmc_engine_notify(struct mmc_engine *engine)
{
	engine->nexpected--;
	pthread_mutex_lock(&engine->mutex);
	engine->nended++;
	pthread_cond_broadcast(&engine->ended);
	pthread_mutex_unlock(&engine->mutex);
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
