/* SPDX-License-Identifier: BSD-3-Clause */
/* Cursors compare by distance, also where they wrap round, and lose no wake-up. */
#include "node/cursor.h"

#include <pthread.h>

#include "check.h"
#include "support/prng.h"

enum { NROUNDS = 10000, NSLEEPERS = 3 };

/* Only a wake-up ends such a sleep within the time that a test may take. */
#define LONG_NS (3600 * MMC_S_NS)

static void numbers_compare_by_their_distance(void)
{
	struct mmc_prng prng = { check_seed() };

	for (int i = 0; i < 100000; i++) {
		uint32_t a = (uint32_t)mmc_prng_next(&prng);
		uint32_t ahead = 1 + (uint32_t)mmc_prng_below(&prng, INT32_MAX);

		CHECK(mmc_cursor_before(a, a + ahead));
		CHECK(!mmc_cursor_before(a + ahead, a));
		CHECK(!mmc_cursor_before(a, a));
	}
}

static void numbers_wrap_round(void)
{
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t number = UINT32_MAX - 10 + i;

		CHECK(mmc_cursor_before(number, number + 1));
		CHECK(!mmc_cursor_before(number + 1, number));
		CHECK(mmc_cursor_before(number, number + INT32_MAX));
	}
}

static void a_cursor_that_has_moved_lets_nobody_sleep(void)
{
	struct mmc_cursor cursor = { 0 };

	mmc_cursor_set(&cursor, 7);
	CHECK_EQ(mmc_cursor_get(&cursor), 7);
	mmc_cursor_sleep(&cursor, 6, LONG_NS);
	mmc_cursor_sleep(&cursor, 8, LONG_NS);
	CHECK_EQ(atomic_load(&cursor.nsleepers), 0);
}

/* Two threads, each of which moves its own cursor when the other's has moved. */
struct player {
	struct mmc_cursor *own;
	struct mmc_cursor *other;
	uint32_t first;
	uint64_t written; /* what the other reads once `own` has moved */
	struct player *opponent;
	uint32_t nwrong;
};

/* Waits until a cursor no longer stands at `npieces`. */
static void await(struct mmc_cursor *cursor, uint32_t npieces)
{
	while (mmc_cursor_get(cursor) == npieces)
		mmc_cursor_sleep(cursor, npieces, LONG_NS);
}

static void *play(void *argument)
{
	struct player *player = argument;

	for (uint32_t i = 0; i < NROUNDS; i++) {
		player->written = i + 1;
		mmc_cursor_set(player->own, player->first + i + 1);
		await(player->other, player->first + i);
		player->nwrong += player->opponent->written < i + 1;
		/* The other may write again only now: both are done reading. */
		mmc_cursor_set(player->own + 1, player->first + i + 1);
		await(player->other + 1, player->first + i);
	}
	return NULL;
}

/*
 * In each round both threads wait for each other twice, over the end of the numbers. A
 * single lost wake-up would let the test time out.
 */
static void no_wake_up_is_lost(void)
{
	static struct mmc_cursor cursors[2][2];
	struct player players[2];
	pthread_t threads[2];

	for (uint32_t i = 0; i < 2; i++) {
		players[i] = (struct player){
			.own = cursors[i],
			.other = cursors[1 - i],
			.first = UINT32_MAX - NROUNDS / 2,
			.opponent = &players[1 - i],
		};
		for (uint32_t k = 0; k < 2; k++)
			mmc_cursor_set(&cursors[i][k], players[i].first);
	}
	for (uint32_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, play, &players[i]);
	for (uint32_t i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		CHECK_EQ(players[i].nwrong, 0);
		CHECK_EQ(mmc_cursor_get(&cursors[i][0]),
			 players[i].first + NROUNDS);
		CHECK_EQ(atomic_load(&cursors[i][0].nsleepers), 0);
	}
}

static struct mmc_cursor shared;

static void *follow(void *argument)
{
	for (uint32_t i = 0; i < NROUNDS; i = mmc_cursor_get(&shared))
		await(&shared, i);
	return argument;
}

/* However many sleep on a cursor, its last move reaches them all. */
static void many_sleepers_are_woken(void)
{
	pthread_t threads[NSLEEPERS];

	for (uint32_t i = 0; i < NSLEEPERS; i++)
		pthread_create(&threads[i], NULL, follow, NULL);
	for (uint32_t i = 1; i <= NROUNDS; i++)
		mmc_cursor_set(&shared, i);
	for (uint32_t i = 0; i < NSLEEPERS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(atomic_load(&shared.nsleepers), 0);
}

CHECK_MAIN(CHECK_TEST(numbers_compare_by_their_distance),
	   CHECK_TEST(numbers_wrap_round),
	   CHECK_TEST(a_cursor_that_has_moved_lets_nobody_sleep),
	   CHECK_TEST(no_wake_up_is_lost), CHECK_TEST(many_sleepers_are_woken))
