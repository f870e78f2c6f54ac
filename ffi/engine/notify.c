/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/notify.h"

#include <unistd.h>

void mmc_engine_expect(struct mmc_engine *engine)
{
	engine->nexpected++;
}

void mmc_engine_tell(struct mmc_engine *engine)
{
	engine->nexpected--;
	pthread_mutex_lock(&engine->lock);
	engine->ntold++;
	pthread_cond_broadcast(&engine->told);
	pthread_mutex_unlock(&engine->lock);
}

int mmc_engine_await(struct mmc_engine *engine, uint64_t *ntold)
{
	if (getpid() != engine->pid)
		return -MMC_EFORKED;
	pthread_mutex_lock(&engine->lock);
	while (engine->ntold == *ntold && !engine->roused)
		pthread_cond_wait(&engine->told, &engine->lock);
	*ntold = engine->ntold;
	engine->roused = false;
	pthread_mutex_unlock(&engine->lock);
	return 0;
}

void mmc_engine_rouse(struct mmc_engine *engine)
{
	if (getpid() != engine->pid)
		return;
	pthread_mutex_lock(&engine->lock);
	engine->roused = true;
	pthread_cond_broadcast(&engine->told);
	pthread_mutex_unlock(&engine->lock);
}
