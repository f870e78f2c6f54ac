/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that awaits notifications gets each, and can be roused. */
#include "engine/threads/notify.h"

#include "check.h"
#include "engine/engine.h"
#include "engine/threads/threads.h"

static struct mmc_engine *engine;

/*
 * Waits until as many requests as `argument` says have ended; then stores there
 * how many waits that took.
 */
static void *await_all(void *argument)
{
	uint64_t nended = 0;
	uint64_t nreturns = 0;

	while (nended < *(const uint64_t *)argument) {
		CHECK_EQ(mmc_engine_await(engine, &nended), 0);
		nreturns++;
	}
	*(uint64_t *)argument = nreturns;
	return NULL;
}

/* A waiting thread learns of every request that ends. */
static void each_end_is_counted(void)
{
	uint64_t count = 3;
	pthread_t thread;

	CHECK_EQ(mmc_engine_create_stepped(&engine), 0);
	for (int i = 0; i < 3; i++)
		mmc_engine_expect_notification(engine);
	CHECK(mmc_engine_must_notify(engine));
	pthread_create(&thread, NULL, await_all, &count);
	for (int i = 0; i < 3; i++)
		mmc_engine_notify(engine);
	CHECK(!mmc_engine_must_notify(engine));
	pthread_join(thread, NULL);
	/* No wait returned before a request had ended. */
	CHECK(count >= 1 && count <= 3);
	mmc_engine_destroy(engine);
}

/* Requests that ended before the call are reported at once, and only once. */
static void none_is_missed(void)
{
	uint64_t nended = 0;

	CHECK_EQ(mmc_engine_create_stepped(&engine), 0);
	for (int i = 0; i < 2; i++) {
		mmc_engine_expect_notification(engine);
		mmc_engine_notify(engine);
	}
	CHECK_EQ(mmc_engine_await(engine, &nended), 0);
	CHECK_EQ(nended, 2);
	mmc_engine_rouse(engine);
	CHECK_EQ(mmc_engine_await(engine, &nended), 0);
	CHECK_EQ(nended, 2);
	CHECK(!engine->threads->roused);
	mmc_engine_destroy(engine);
}

CHECK_MAIN(CHECK_TEST(each_end_is_counted), CHECK_TEST(none_is_missed))
