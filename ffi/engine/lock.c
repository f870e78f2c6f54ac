/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/lock.h"

#include "support/descriptor.h"

static bool is_held(const struct mmc_engine *engine)
{
	return engine->serving != engine->next_ticket;
}

/*
 * Returns the next ticket. The mutex is held; the access is atomic all the same, since
 * mmc_lock_is_contended() reads `next_ticket` without the mutex.
 */
static uint64_t take_ticket(struct mmc_engine *engine)
{
	return __atomic_fetch_add(&engine->next_ticket, 1, __ATOMIC_RELAXED);
}

void mmc_lock_take(struct mmc_engine *engine)
{
	uint64_t ticket;
	bool held;

	pthread_mutex_lock(&engine->mutex);
	held = is_held(engine);
	ticket = take_ticket(engine);
	/* A holder woken before the ticket was taken would sleep again. */
	if (held && !engine->stepped)
		mmc_descriptor_wake(engine->wake_fd);
	while (engine->serving != ticket)
		pthread_cond_wait(&engine->handover, &engine->mutex);
	pthread_mutex_unlock(&engine->mutex);
}

bool mmc_lock_try(struct mmc_engine *engine)
{
	bool free;

	pthread_mutex_lock(&engine->mutex);
	free = !is_held(engine) && !engine->led;
	if (free)
		take_ticket(engine);
	pthread_mutex_unlock(&engine->mutex);
	return free;
}

void mmc_lock_give(struct mmc_engine *engine)
{
	pthread_mutex_lock(&engine->mutex);
	engine->serving++;
	if (is_held(engine) || engine->nawaiting > 0)
		pthread_cond_broadcast(&engine->handover);
	pthread_mutex_unlock(&engine->mutex);
}

void mmc_lock_await(struct mmc_engine *engine)
{
	uint64_t serving;

	pthread_mutex_lock(&engine->mutex);
	serving = engine->serving;
	engine->nawaiting++;
	while (is_held(engine) && engine->serving == serving)
		pthread_cond_wait(&engine->handover, &engine->mutex);
	engine->nawaiting--;
	pthread_mutex_unlock(&engine->mutex);
}

bool mmc_lock_is_contended(const struct mmc_engine *engine)
{
	/* One of the tickets that have not been served is the holder's own. */
	return __atomic_load_n(&engine->next_ticket, __ATOMIC_RELAXED) -
		       engine->serving >
	       1;
}
