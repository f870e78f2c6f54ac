/* SPDX-License-Identifier: BSD-3-Clause */
/* The right neighbour gets an advert for each question; memory is registered once. */
#include "check.h"
#include "core/repair/advertiser.h"

static const struct mmc_advert readable = {
	.generation = 5,
	.data_address = 0x1000,
	.data_key = 9,
	.has_data = true,
};

static struct mmc_advertiser advertiser_of(uint64_t generation)
{
	struct mmc_advertiser advertiser;

	mmc_advertiser_init(&advertiser, generation, NULL);
	return advertiser;
}

/* Nothing is due before a question; then memory is registered, and the advert sent. */
static void registers_first(void)
{
	struct mmc_advertiser a = advertiser_of(5);

	CHECK(!mmc_advertiser_is_due(&a));
	CHECK(!mmc_advertiser_take_registration(&a));
	CHECK(!mmc_advertiser_take_advert(&a));
	mmc_advertiser_ask(&a);
	CHECK(mmc_advertiser_is_due(&a));
	CHECK(!mmc_advertiser_take_advert(&a));
	CHECK(mmc_advertiser_take_registration(&a));
	CHECK(!mmc_advertiser_take_registration(&a));
	mmc_advertiser_ask(&a);
	CHECK(!mmc_advertiser_is_due(&a));
	mmc_advertiser_registered(&a, &readable);
	CHECK(a.advert.has_data);
	CHECK_EQ(a.advert.data_address, 0x1000);
	CHECK_EQ(a.advert.data_key, 9);
	CHECK_EQ(a.advert.generation, 5);
	CHECK(mmc_advertiser_take_advert(&a));
	CHECK(!mmc_advertiser_is_due(&a));
}

/* A second question is answered without another registration. */
static void registers_once(void)
{
	struct mmc_advertiser a = advertiser_of(5);

	mmc_advertiser_ask(&a);
	CHECK(mmc_advertiser_take_registration(&a));
	mmc_advertiser_registered(&a, &readable);
	for (int i = 0; i < 3; i++) {
		mmc_advertiser_ask(&a);
		CHECK(!mmc_advertiser_take_registration(&a));
		CHECK(mmc_advertiser_take_advert(&a));
		CHECK(!mmc_advertiser_take_advert(&a));
	}
}

/* The advert is sent at once if nothing can ever be read. */
static void nothing_to_register(void)
{
	struct mmc_advertiser a = advertiser_of(0);

	mmc_advertiser_ask(&a);
	CHECK(!mmc_advertiser_take_registration(&a));
	CHECK(mmc_advertiser_take_advert(&a));
}

/* After a refusal the advert says that nothing can be read. */
static void refused(void)
{
	struct mmc_advertiser a = advertiser_of(5);

	mmc_advertiser_ask(&a);
	CHECK(mmc_advertiser_take_registration(&a));
	mmc_advertiser_registered(&a, &(struct mmc_advert){ 0 });
	CHECK_EQ(a.advert.generation, 0);
	CHECK(!a.advert.has_data);
	CHECK(mmc_advertiser_take_advert(&a));
}

/*
 * The word before the bitmap holds the operation's generation from publish to revoke.
 */
static void generation(void)
{
	struct mmc_advertiser a;
	uint64_t word = 3;

	mmc_advertiser_init(&a, 77, &word);
	CHECK_EQ(word, 3);
	mmc_advertiser_publish(&a);
	CHECK_EQ(word, 77);
	mmc_advertiser_revoke(&a);
	CHECK_EQ(word, 0);
}

CHECK_MAIN(CHECK_TEST(registers_first), CHECK_TEST(registers_once),
	   CHECK_TEST(nothing_to_register), CHECK_TEST(refused),
	   CHECK_TEST(generation))
