/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries are opened once they give the published answers, and not before. */
#include <mpimcast/mmc.h>

#include "check.h"
#include "drivers/protect/answers.h"
#include "drivers/protect/libcrypto.h"
#include "drivers/protect/primitive.h"

/* A primitive that seals as libcrypto does, but with one bit of the tag wrong. */
static int seal_wrongly(void *cipher, const struct mmc_text *text, uint8_t *tag)
{
	int rv = mmc_libcrypto.seal(cipher, text, tag);

	tag[3] ^= 0x10;
	return rv;
}

/* Takes any tag. */
static bool open_anything(void *cipher, const struct mmc_text *text,
			  const uint8_t *tag)
{
	mmc_libcrypto.open(cipher, text, tag);
	return true;
}

static void libraries_that_lack_are_refused(void)
{
	CHECK_EQ(mmc_primitive_open(MMC_PRIMITIVES, ""), -MMC_ENODEV);
	CHECK(mmc_primitive_find(MMC_PRIMITIVES) == NULL);
	CHECK_EQ(mmc_primitive_name(MMC_PRIMITIVES)[0], '\0');
	CHECK(mmc_primitive_find(MMC_PRIMITIVE_AES) == NULL);
	CHECK_EQ(mmc_primitive_open(MMC_PRIMITIVE_AES, "libnone-such.so"),
		 -MMC_ENODEV);
	CHECK(strstr(mmc_last_error(), "libnone-such.so") != NULL);
	CHECK_EQ(mmc_primitive_open(MMC_PRIMITIVE_AES, "libm.so.6"),
		 -MMC_ENODEV);
	CHECK(strstr(mmc_last_error(), "libm.so.6 has no EVP_") != NULL);
	CHECK(mmc_primitive_find(MMC_PRIMITIVE_AES) == NULL);
}

static void wrong_answers_are_noticed(void)
{
	struct mmc_primitive wrong;

	if (mmc_primitive_open(MMC_PRIMITIVE_AES, "") != 0) {
		printf("skipped: %s\n", mmc_last_error());
		exit(77);
	}
	CHECK(mmc_primitive_find(MMC_PRIMITIVE_AES) == &mmc_libcrypto);
	CHECK(mmc_answers_are_right(&mmc_libcrypto, MMC_PRIMITIVE_AES));
	CHECK(mmc_answers_derived());
	/* AEGIS's answers are others than AES's. */
	CHECK(!mmc_answers_are_right(&mmc_libcrypto, MMC_PRIMITIVE_AEGIS));
	wrong = mmc_libcrypto;
	wrong.seal = seal_wrongly;
	CHECK(!mmc_answers_are_right(&wrong, MMC_PRIMITIVE_AES));
	wrong = mmc_libcrypto;
	wrong.open = open_anything;
	CHECK(!mmc_answers_are_right(&wrong, MMC_PRIMITIVE_AES));
}

/* AEGIS's library is seldom installed; where it is, it is right. */
static void aegis_is_right_where_it_is(void)
{
	if (mmc_primitive_open(MMC_PRIMITIVE_AEGIS, "") != 0)
		printf("without AEGIS: %s\n", mmc_last_error());
	else
		CHECK(mmc_answers_are_right(
			mmc_primitive_find(MMC_PRIMITIVE_AEGIS),
			MMC_PRIMITIVE_AEGIS));
}

CHECK_MAIN(CHECK_TEST(libraries_that_lack_are_refused),
	   CHECK_TEST(wrong_answers_are_noticed),
	   CHECK_TEST(aegis_is_right_where_it_is))
