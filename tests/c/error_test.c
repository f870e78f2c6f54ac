/* SPDX-License-Identifier: BSD-3-Clause */
/* Each error code has a text of its own, and each thread has its own last error. */
#include "support/error.h"

#include <mpimcast/mmc.h>
#include <pthread.h>

#include "check.h"
#include "core/types.h"

static void each_code_has_its_text(void)
{
	const char *unknown = mmc_strerror(MMC_ERROR_MAX + 1);

	for (int code = 0; code <= MMC_ERROR_MAX; code++) {
		CHECK(strcmp(mmc_strerror(code), unknown) != 0);
		CHECK(strcmp(mmc_strerror(-code), mmc_strerror(code)) == 0);
		for (int other = 0; other < code; other++)
			CHECK(strcmp(mmc_strerror(code), mmc_strerror(other)) !=
			      0);
	}
	CHECK(strcmp(mmc_strerror(1000), unknown) == 0);
}

static void the_last_text_counts(void)
{
	mmc_error_set("%s has %d bytes", "a block", 17);
	CHECK(strcmp(mmc_last_error(), "a block has 17 bytes") == 0);
	mmc_error_set("100 %%");
	CHECK(strcmp(mmc_last_error(), "100 %") == 0);
}

static void long_text_is_cut_off(void)
{
	char text[4000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	mmc_error_set("%s", text);
	CHECK(strlen(mmc_last_error()) > 100);
	CHECK(strlen(mmc_last_error()) < sizeof(text) - 1);
	CHECK(strncmp(mmc_last_error(), text, strlen(mmc_last_error())) == 0);
}

static void *fail_elsewhere(void *argument)
{
	(void)argument;
	CHECK(strcmp(mmc_last_error(), "") == 0);
	mmc_error_set("elsewhere");
	CHECK(strcmp(mmc_last_error(), "elsewhere") == 0);
	return NULL;
}

static void threads_have_texts_of_their_own(void)
{
	pthread_t thread;

	mmc_error_set("here");
	CHECK_EQ(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(strcmp(mmc_last_error(), "here") == 0);
}

CHECK_MAIN(CHECK_TEST(each_code_has_its_text), CHECK_TEST(the_last_text_counts),
	   CHECK_TEST(long_text_is_cut_off),
	   CHECK_TEST(threads_have_texts_of_their_own))
