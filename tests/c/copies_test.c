/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "engine/copies.h"

/* A reservation makes only the copies that are missing. */
static void as_many_as_reserved(void)
{
	struct mmc_copies copies = { 0 };
	struct mmc_copy *one, *other;
	uint32_t nmade;

	CHECK_EQ(mmc_copies_reserve(&copies, 100, 2, &nmade), 0);
	CHECK_EQ(nmade, 2);
	one = mmc_copies_take(&copies);
	other = mmc_copies_take(&copies);
	CHECK(one != other);
	one->bytes[99] = other->bytes[99] = 1;
	/* Copies in use count as reserved, too. */
	CHECK_EQ(mmc_copies_reserve(&copies, 50, 2, &nmade), 0);
	CHECK_EQ(nmade, 0);
	CHECK_EQ(mmc_copies_reserve(&copies, 100, 3, &nmade), 0);
	CHECK_EQ(nmade, 1);
	mmc_copies_give(&copies, one);
	mmc_copies_give(&copies, other);
	mmc_copies_give(&copies, NULL);
	CHECK(mmc_copies_take(&copies) == other);
	mmc_copies_give(&copies, other);
	mmc_copies_clear(&copies);
	CHECK(copies.idle == NULL);
}

/* A larger reservation replaces the smaller copies, and serves smaller ones later. */
static void larger_ones(void)
{
	struct mmc_copies copies = { 0 };
	struct mmc_copy *small, *large;
	uint32_t nmade;

	CHECK_EQ(mmc_copies_reserve(&copies, 100, 2, &nmade), 0);
	small = mmc_copies_take(&copies);
	CHECK_EQ(mmc_copies_reserve(&copies, 1000, 2, &nmade), 0);
	CHECK_EQ(nmade, 2);
	mmc_copies_give(&copies, small);
	for (int i = 0; i < 2; i++) {
		large = mmc_copies_take(&copies);
		large->bytes[999] = 1;
		mmc_copies_give(&copies, large);
	}
	CHECK_EQ(mmc_copies_reserve(&copies, 100, 2, &nmade), 0);
	CHECK_EQ(nmade, 0);
	mmc_copies_clear(&copies);
}

CHECK_MAIN(CHECK_TEST(as_many_as_reserved), CHECK_TEST(larger_ones))
