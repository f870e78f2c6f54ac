/* SPDX-License-Identifier: BSD-3-Clause */
/* A fetcher looks at its neighbour's bitmap when it wants chunks, ever more rarely. */
#include "check.h"
#include "core/repair/look.h"

#define SRTT_NS (50 * MMC_US_NS)
#define NWORDS 4

/* Returns a look that is due at once. */
static struct mmc_look look_at(uint64_t now_ns)
{
	struct mmc_look look;

	mmc_look_init(&look, NWORDS);
	look.srtt_ns = SRTT_NS;
	look.interval_ns = SRTT_NS;
	CHECK(!mmc_look_goes_on(&look, now_ns));
	mmc_look_soon(&look, now_ns);
	return look;
}

/* Reads all words in one read; with `found`, they show wanted chunks. */
static void read_all(struct mmc_look *look, uint64_t now_ns, bool found)
{
	CHECK(mmc_look_goes_on(look, now_ns));
	mmc_look_read(look, NWORDS);
	CHECK(!mmc_look_goes_on(look, now_ns));
	look->nreading--;
	if (found)
		mmc_look_found(look);
	mmc_look_end(look, now_ns);
}

/* Looks in vain become rarer, down to one a millisecond; a find restores their rate. */
static void ever_more_rarely(void)
{
	uint64_t now_ns = MMC_S_NS;
	struct mmc_look look = look_at(now_ns);

	for (uint64_t wait_ns = SRTT_NS; wait_ns < 64 * SRTT_NS;) {
		read_all(&look, now_ns, false);
		wait_ns *= 2;
		CHECK_EQ(look.at_ns - now_ns,
			 wait_ns < MMC_MS_NS ? wait_ns : MMC_MS_NS);
		CHECK(!mmc_look_goes_on(&look, look.at_ns - 1));
		now_ns = look.at_ns;
	}
	read_all(&look, now_ns, true);
	CHECK_EQ(look.at_ns, now_ns + SRTT_NS);
}

/* If chunks become wanted during a look, the next look follows at once. */
static void wanted_meanwhile(void)
{
	uint64_t now_ns = MMC_S_NS;
	struct mmc_look look = look_at(now_ns);

	CHECK(mmc_look_goes_on(&look, now_ns));
	mmc_look_read(&look, 2);
	mmc_look_soon(&look, now_ns);
	CHECK_EQ(look.next_word, 2);
	mmc_look_read(&look, NWORDS);
	look.nreading--;
	mmc_look_end(&look, now_ns);
	CHECK_EQ(look.at_ns, MMC_NEVER_NS); /* one read is under way */
	look.nreading--;
	mmc_look_end(&look, now_ns);
	CHECK_EQ(look.at_ns, now_ns);
	CHECK(mmc_look_goes_on(&look, now_ns));
	CHECK_EQ(look.next_word, 0);
}

/* A look that finds nothing to read is not repeated until more is wanted. */
static void nothing_wanted(void)
{
	uint64_t now_ns = MMC_S_NS;
	struct mmc_look look = look_at(now_ns);

	CHECK(mmc_look_goes_on(&look, now_ns));
	look.next_word = NWORDS;
	mmc_look_end(&look, now_ns);
	CHECK_EQ(look.at_ns, MMC_NEVER_NS);
	mmc_look_soon(&look, now_ns + 1);
	CHECK_EQ(look.at_ns, now_ns + 1);
}

/* When nothing can be read any more, no look goes on or is due. */
static void stopped(void)
{
	struct mmc_look look = look_at(MMC_S_NS);

	CHECK(mmc_look_goes_on(&look, MMC_S_NS));
	mmc_look_read(&look, 1);
	mmc_look_stop(&look);
	CHECK(!mmc_look_goes_on(&look, MMC_NEVER_NS - 1));
	CHECK_EQ(look.state, MMC_LOOK_NONE);
}

CHECK_MAIN(CHECK_TEST(ever_more_rarely), CHECK_TEST(wanted_meanwhile),
	   CHECK_TEST(nothing_wanted), CHECK_TEST(stopped))
