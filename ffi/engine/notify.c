/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/notify.h"

void mmc_engine_expect_notification(struct mmc_engine *engine)
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
