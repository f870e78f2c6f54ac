/* SPDX-License-Identifier: BSD-3-Clause */
/* Bits outlive whoever made them, until the last holder is gone; ASan sees to the rest. */
#include "support/present.h"

#include <pthread.h>
#include <string.h>

#include "check.h"

enum { NWORDS = 3, NTHREADS = 4 };

static struct mmc_present *make(void)
{
	uint64_t *words = calloc(NWORDS + 1, sizeof(*words));

	words[1] = 5;
	return mmc_present_new(words, words + 1, 70);
}

static void the_words(void)
{
	struct mmc_present *present = make();
	uint32_t nbits;

	CHECK_EQ(mmc_present_words(present, &nbits)[0], 5);
	CHECK_EQ(nbits, 70);
	mmc_present_free(present);
	mmc_present_free(NULL);
}

static void the_last_holder_frees(void)
{
	struct mmc_present *present = make();
	struct mmc_present *second = mmc_present_hold(present);
	uint32_t nbits;

	mmc_present_free(present);
	CHECK_EQ(mmc_present_words(second, &nbits)[0], 5);
	mmc_present_free(second);
}

static void *look_and_let_go(void *present)
{
	uint32_t nbits;

	CHECK_EQ(mmc_present_words(present, &nbits)[0], 5);
	mmc_present_free(present);
	return NULL;
}

static void holders_in_several_threads(void)
{
	pthread_t threads[NTHREADS];

	for (int turn = 0; turn < 100; turn++) {
		struct mmc_present *present = make();

		for (int i = 0; i < NTHREADS; i++)
			CHECK_EQ(pthread_create(&threads[i], NULL,
						look_and_let_go,
						mmc_present_hold(present)),
				 0);
		mmc_present_free(present);
		for (int i = 0; i < NTHREADS; i++)
			pthread_join(threads[i], NULL);
	}
}

CHECK_MAIN(CHECK_TEST(the_words), CHECK_TEST(the_last_holder_frees),
	   CHECK_TEST(holders_in_several_threads))
