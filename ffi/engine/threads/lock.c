/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/threads/lock.h"

#include "engine/threads/threads.h"
#include "support/descriptor.h"

static bool is_held(const struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;

	return threads->serving != threads->next_ticket;
}

/*
 * Returns the next ticket. The mutex is held; the access is atomic all the same, since
 * mmc_lock_is_contended() reads `next_ticket` without the mutex.
 */
static uint64_t take_ticket(struct mmc_engine *engine)
{
	return __atomic_fetch_add(&engine->threads->next_ticket, 1,
				  __ATOMIC_RELAXED);
}

void mmc_lock_take(struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;
	uint64_t ticket;
	bool held;

	pthread_mutex_lock(&threads->mutex);
	held = is_held(engine);
	ticket = take_ticket(engine);
	/* A holder woken before the ticket was taken would sleep again. */
	if (held && !engine->stepped)
		mmc_descriptor_wake(threads->wake_fd);
	while (threads->serving != ticket)
		pthread_cond_wait(&threads->handover, &threads->mutex);
	pthread_mutex_unlock(&threads->mutex);
}

bool mmc_lock_try(struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;
	bool free;

	pthread_mutex_lock(&threads->mutex);
	free = !is_held(engine) && !threads->led;
	if (free)
		take_ticket(engine);
	pthread_mutex_unlock(&threads->mutex);
	return free;
}

void mmc_lock_give(struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;

	pthread_mutex_lock(&threads->mutex);
	threads->serving++;
	if (is_held(engine) || threads->nawaiting > 0)
		pthread_cond_broadcast(&threads->handover);
	pthread_mutex_unlock(&threads->mutex);
}

void mmc_lock_await(struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;
	uint64_t serving;

	pthread_mutex_lock(&threads->mutex);
	serving = threads->serving;
	threads->nawaiting++;
	while (is_held(engine) && threads->serving == serving)
		pthread_cond_wait(&threads->handover, &threads->mutex);
	threads->nawaiting--;
	pthread_mutex_unlock(&threads->mutex);
}

bool mmc_lock_is_contended(const struct mmc_engine *engine)
{
	struct mmc_threads *threads = engine->threads;
	/* One of the tickets that have not been served is the holder's own. */
	return __atomic_load_n(&threads->next_ticket, __ATOMIC_RELAXED) -
		       threads->serving >
	       1;
}
