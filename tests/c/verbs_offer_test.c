/* SPDX-License-Identifier: BSD-3-Clause */
/* The offers that the ends of a broken connection send each other to make it anew. */
#include <string.h>

#include "check.h"
#include "drivers/verbs/reconnect.h"

static const struct mmc_verbs_offer offer = {
	.first_psns = { 0x123456, 0xabcdef },
	.incarnation = 7,
	.psn = 0xfffffe,
	.lid = 0xbfff,
	.taken = true,
};

static bool reads(const uint8_t *bytes, uint32_t nbytes)
{
	struct mmc_verbs_offer read;

	return mmc_verbs_offer_decode(&read, bytes, nbytes);
}

/* An offer survives encoding and decoding. */
static void what_is_written_is_read(void)
{
	uint8_t bytes[MMC_VERBS_OFFER_BYTES];
	struct mmc_verbs_offer read;

	mmc_verbs_offer_encode(bytes, &offer);
	CHECK(mmc_verbs_offer_decode(&read, bytes, sizeof(bytes)));
	CHECK_EQ(read.first_psns[0], offer.first_psns[0]);
	CHECK_EQ(read.first_psns[1], offer.first_psns[1]);
	CHECK_EQ(read.incarnation, offer.incarnation);
	CHECK_EQ(read.psn, offer.psn);
	CHECK_EQ(read.lid, offer.lid);
	CHECK_EQ(read.taken, offer.taken);
}

/* Bytes without the tag, or of another length, are not an offer. */
static void nothing_else_is_read(void)
{
	uint8_t bytes[MMC_VERBS_OFFER_BYTES + 1] = { 0 };

	CHECK(!reads(bytes, MMC_VERBS_OFFER_BYTES));
	mmc_verbs_offer_encode(bytes, &offer);
	for (uint32_t nbytes = 0; nbytes <= sizeof(bytes); nbytes++)
		CHECK_EQ(reads(bytes, nbytes), nbytes == MMC_VERBS_OFFER_BYTES);
}

/* Every number that is accepted is one that a queue pair can have. */
static void numbers_stay_in_their_ranges(void)
{
	uint32_t nread = 0;

	for (uint32_t at = 0; at < MMC_VERBS_OFFER_BYTES; at++) {
		for (uint32_t value = 0; value < 256; value++) {
			uint8_t bytes[MMC_VERBS_OFFER_BYTES];
			struct mmc_verbs_offer read;

			mmc_verbs_offer_encode(bytes, &offer);
			bytes[at] = (uint8_t)value;
			if (!mmc_verbs_offer_decode(&read, bytes,
						    sizeof(bytes)))
				continue;
			nread++;
			CHECK(read.incarnation != 0);
			CHECK(read.psn <= 0xffffff);
			CHECK(read.lid < 0xc000);
		}
	}
	/*
	 * Accepted: the tag, the first PSNs, an incarnation but 0, a PSN, a LID, a flag.
	 */
	CHECK_EQ(nread, 4 + 8 * 256 + (4 * 256 - 1) + (1 + 3 * 256) +
				(192 + 256) + (1 + 2));
}

CHECK_MAIN(CHECK_TEST(what_is_written_is_read),
	   CHECK_TEST(nothing_else_is_read),
	   CHECK_TEST(numbers_stay_in_their_ranges))
