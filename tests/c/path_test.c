/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "core/flow/path.h"

static void converges_to_the_round_trip(void)
{
	struct mmc_path path;

	mmc_path_init(&path);
	CHECK_EQ(path.srtt_ns, MMC_PATH_SRTT_NS);
	for (int i = 0; i < 100; i++)
		mmc_path_round_trip(&path, 40 * MMC_US_NS);
	CHECK(path.srtt_ns >= 40 * MMC_US_NS);
	CHECK(path.srtt_ns < 41 * MMC_US_NS);
}

/* Over a long link the first round trip counts at once, since none is shorter. */
static void learns_a_long_round_trip(void)
{
	struct mmc_path path;

	mmc_path_init(&path);
	mmc_path_round_trip(&path, 100 * MMC_MS_NS);
	CHECK_EQ(path.srtt_ns, 100 * MMC_MS_NS);
	for (int i = 0; i < 100; i++)
		mmc_path_round_trip(&path,
				    (100 + (unsigned)i % 20) * MMC_MS_NS);
	CHECK(path.srtt_ns >= 100 * MMC_MS_NS);
	CHECK(path.srtt_ns < 120 * MMC_MS_NS);
	/* It becomes shorter at once, and longer by and by, as the path does. */
	mmc_path_round_trip(&path, 5 * MMC_MS_NS);
	CHECK(path.srtt_ns <= 2 * 5 * MMC_MS_NS + MMC_PATH_SRTT_SHORT_NS);
	for (int i = 0; i < 300; i++)
		mmc_path_round_trip(&path, 200 * MMC_MS_NS);
	CHECK_EQ(path.srtt_ns, 200 * MMC_MS_NS);
}

/* What a rank waited for a processor is not the network's, however long it was. */
static void ignores_waits(void)
{
	struct mmc_path path;

	mmc_path_init(&path);
	mmc_path_round_trip(&path, 60 * MMC_S_NS);
	CHECK_EQ(path.srtt_ns, MMC_PATH_SRTT_NS);
	mmc_path_round_trip(&path, 40 * MMC_US_NS);
	for (int i = 0; i < 50; i++)
		mmc_path_round_trip(&path, 300 * MMC_MS_NS);
	CHECK(path.srtt_ns <= 2 * path.shortest_ns + MMC_PATH_SRTT_SHORT_NS);
	CHECK(path.shortest_ns < 100 * MMC_US_NS);
}

/* An operation that has ended may be the one that measures. */
static void adopts_a_round_trip(void)
{
	struct mmc_path team, stream;

	mmc_path_init(&team);
	mmc_path_init(&stream);
	mmc_path_set_rate(&team, 12345);
	mmc_path_round_trip(&stream, 30 * MMC_MS_NS);
	mmc_path_adopt_trip(&team, &stream);
	CHECK_EQ(team.srtt_ns, 30 * MMC_MS_NS);
	CHECK_EQ(team.shortest_ns, 30 * MMC_MS_NS);
	CHECK_EQ(team.rate_bytes_per_s, 12345);
}

/* However wild the measurements, the round trip stays within its bounds. */
static void bounded_round_trip(void)
{
	struct mmc_path path;

	mmc_path_init(&path);
	for (int i = 0; i < 100; i++)
		mmc_path_round_trip(&path, UINT64_MAX);
	CHECK(path.srtt_ns <= MMC_PATH_SRTT_MAX_NS);
	for (int i = 0; i < 1000; i++)
		mmc_path_round_trip(&path, 0);
	CHECK(path.srtt_ns >= MMC_PATH_SRTT_MIN_NS);
}

static void converges_to_the_rate(void)
{
	struct mmc_path path;

	mmc_path_init(&path);
	for (int i = 0; i < 50; i++)
		mmc_path_received(&path, 5 * 1000000, MMC_MS_NS);
	CHECK(path.rate_bytes_per_s > UINT64_C(4990000000));
	CHECK(path.rate_bytes_per_s <= UINT64_C(5000000000));
	mmc_path_received(&path, 1, 999); /* too short to measure */
	CHECK(path.rate_bytes_per_s > UINT64_C(4990000000));
}

/* The rate is a divisor, so it never falls to 0. */
static void bounded_rate(void)
{
	struct mmc_path path;

	mmc_path_init(&path);
	for (int i = 0; i < 1000; i++)
		mmc_path_received(&path, 0, MMC_NEVER_NS);
	CHECK_EQ(path.rate_bytes_per_s, 1);
	CHECK_EQ(mmc_path_time_ns(&path, 10), 10 * MMC_S_NS);
	mmc_path_received(&path, UINT64_MAX, MMC_US_NS);
	CHECK_EQ(path.rate_bytes_per_s, 1);
}

/*
 * Tells a path what an operation heard that began at `now_ns` and took a millisecond;
 * returns the time of its end.
 */
static uint64_t hear(struct mmc_path *path, uint64_t now_ns,
		     uint32_t expected_chunks, uint32_t heard_chunks,
		     uint32_t unheard)
{
	const struct mmc_reception reception = {
		.begin_ns = now_ns,
		.end_ns = now_ns + MMC_MS_NS,
		.expected_chunks = expected_chunks,
		.heard_chunks = heard_chunks,
		.unheard = unheard,
	};

	mmc_path_heard(path, &reception);
	return reception.end_ns;
}

/*
 * Multicast is suspended if nothing arrives by it, or nothing of one sender;
 * mere loss does not suspend it.
 */
static void silence_is_no_accident(void)
{
	struct mmc_path path;
	uint64_t now_ns = MMC_S_NS;

	mmc_path_init(&path);
	for (int i = 0; i < 10000; i++)
		now_ns = hear(&path, now_ns, 100, 1, MMC_PEER_NONE);
	now_ns = hear(&path, now_ns, MMC_PATH_SILENT_CHUNKS - 1, 0,
		      MMC_PEER_NONE);
	CHECK(!path.unicast);
	now_ns = hear(&path, now_ns, 1, 0, MMC_PEER_NONE);
	CHECK(path.unicast);
	CHECK_EQ(path.unheard, MMC_PEER_NONE);
	mmc_path_init(&path);
	for (int i = 0; i < MMC_PATH_DEAF_EPOCHS; i++)
		now_ns = hear(&path, now_ns, 100, 99, 7);
	CHECK(path.unicast);
	CHECK_EQ(path.unheard, 7);
}

/* Silence in operations that ran at the same time may be an accident. */
static void one_silence_may_be_an_accident(void)
{
	struct mmc_path path;
	uint64_t now_ns = MMC_S_NS;

	mmc_path_init(&path);
	for (int i = 0; i < 10; i++) {
		hear(&path, now_ns, 1000, 0, 0);
		hear(&path, now_ns, 1000, 0, MMC_PEER_NONE);
		now_ns = hear(&path, now_ns, 1000, 0, MMC_PEER_NONE);
		CHECK(!path.unicast);
		now_ns = hear(&path, now_ns, 1000, 1, MMC_PEER_NONE);
	}
	now_ns = hear(&path, now_ns, 1000, 0, MMC_PEER_NONE);
	CHECK(!path.unicast);
	hear(&path, now_ns, 1, 0, MMC_PEER_NONE);
	CHECK(path.unicast);
}

/* Where connections lose nothing, multicast may lag behind them for a time. */
static void a_lag_is_no_silence(void)
{
	struct mmc_path path;
	struct mmc_reception reception = {
		.expected_chunks = 100,
		.unheard = 3,
		.lag_ns = MMC_PATH_LAG_RELIABLE_NS,
	};

	mmc_path_init(&path);
	for (uint64_t now_ns = MMC_S_NS;
	     now_ns < MMC_S_NS + MMC_PATH_LAG_RELIABLE_NS;
	     now_ns += MMC_MS_NS) {
		reception.begin_ns = now_ns;
		reception.end_ns = now_ns + MMC_MS_NS;
		mmc_path_heard(&path, &reception);
		CHECK(!path.unicast);
	}
	reception.begin_ns = MMC_S_NS + 2 * MMC_PATH_LAG_RELIABLE_NS;
	reception.end_ns = reception.begin_ns + MMC_MS_NS;
	mmc_path_heard(&path, &reception);
	CHECK(path.unicast);
	CHECK_EQ(path.unheard, 3);
}

/* Suspended multicast is tried again at least once a second. */
static void silence_does_not_last(void)
{
	struct mmc_path path;
	uint64_t now_ns = MMC_S_NS;
	unsigned ntries = 0;

	mmc_path_init(&path);
	now_ns = hear(&path, now_ns, 100, 0, MMC_PEER_NONE);
	now_ns = hear(&path, now_ns, 100, 0, MMC_PEER_NONE);
	for (uint64_t end_ns = now_ns + 10 * MMC_S_NS; now_ns < end_ns;
	     now_ns += MMC_MS_NS) {
		if (mmc_path_is_deaf(&path, now_ns))
			continue;
		/* An operation that expected no chunk tells nothing. */
		hear(&path, now_ns, 0, 0, MMC_PEER_NONE);
		CHECK(!mmc_path_is_deaf(&path, now_ns));
		hear(&path, now_ns, 100, 0, MMC_PEER_NONE);
		CHECK(mmc_path_is_deaf(&path, now_ns));
		ntries++;
	}
	CHECK(ntries >= 10);
	CHECK(ntries <= 15);
	now_ns += MMC_PATH_RETRY_MAX_NS;
	CHECK(!mmc_path_is_deaf(&path, now_ns));
	now_ns = hear(&path, now_ns, 100, 99, MMC_PEER_NONE);
	CHECK(!path.unicast);
	/* When multicast fails again soon, it is tried less often than at first. */
	now_ns = hear(&path, now_ns, 100, 0, MMC_PEER_NONE);
	now_ns = hear(&path, now_ns, 100, 0, MMC_PEER_NONE);
	CHECK(mmc_path_is_deaf(&path, now_ns + MMC_PATH_RETRY_MAX_NS / 2));
	/* After a long time without trouble it is tried as often as at first. */
	for (int i = 0; i < 1000; i++)
		now_ns = hear(&path, now_ns, 100, 99, MMC_PEER_NONE);
	now_ns = hear(&path, now_ns, 100, 0, MMC_PEER_NONE);
	now_ns = hear(&path, now_ns, 100, 0, MMC_PEER_NONE);
	CHECK(path.unicast);
	CHECK(!mmc_path_is_deaf(&path, now_ns + MMC_PATH_RETRY_MIN_NS));
}

/* A chunk that multicast brings after it was fetched proves that multicast works. */
static void lateness_is_no_silence(void)
{
	struct mmc_path path;
	uint64_t now_ns = MMC_S_NS;

	mmc_path_init(&path);
	for (int i = 0; i < 1000; i++) {
		mmc_path_settle(&path);
		now_ns = hear(&path, now_ns, MMC_PATH_SILENT_CHUNKS - 1, 0, 7);
		mmc_path_late(&path);
	}
	CHECK(!path.unicast);
	/* A late chunk has suspended multicast tried again at once. */
	now_ns = hear(&path, now_ns, 100, 0, MMC_PEER_NONE);
	now_ns = hear(&path, now_ns, 100, 0, MMC_PEER_NONE);
	CHECK(mmc_path_is_deaf(&path, now_ns));
	mmc_path_late(&path);
	CHECK(!mmc_path_is_deaf(&path, now_ns));
}

/* The time for some bytes follows from the rate, and grows with the bytes. */
static void times(void)
{
	const struct mmc_path path = { .rate_bytes_per_s = 1000000000 };
	const struct mmc_path odd = { .rate_bytes_per_s = 999999937 };

	for (uint64_t nbytes = 1; nbytes < UINT64_C(1) << 33; nbytes *= 3)
		CHECK_EQ(mmc_path_time_ns(&path, nbytes), nbytes);
	/* Beyond 18 GB, a time is exact only to a second. */
	for (uint64_t nbytes = 1; nbytes < UINT64_C(1) << 45; nbytes *= 2) {
		CHECK(mmc_path_time_ns(&odd, nbytes) + MMC_S_NS >=
		      mmc_path_time_ns(&odd, nbytes - 1));
		CHECK(mmc_path_time_ns(&odd, nbytes) + MMC_S_NS >= nbytes);
	}
}

/* A loss is remembered for some operations, and each new one as long again. */
static void losses_are_remembered(void)
{
	struct mmc_path path;

	mmc_path_init(&path);
	CHECK_EQ(path.nlossy, 0);
	mmc_path_note_losses(&path, false);
	CHECK_EQ(path.nlossy, 0);
	mmc_path_note_losses(&path, true);
	for (uint32_t i = 1; i < MMC_PATH_LOSSY_OPERATIONS; i++) {
		mmc_path_note_losses(&path, false);
		CHECK(path.nlossy > 0);
	}
	mmc_path_note_losses(&path, true);
	CHECK_EQ(path.nlossy, MMC_PATH_LOSSY_OPERATIONS);
	for (uint32_t i = 0; i < MMC_PATH_LOSSY_OPERATIONS; i++)
		mmc_path_note_losses(&path, false);
	CHECK_EQ(path.nlossy, 0);
}

/* A long path outgrows a window that holds less than two products of rate and round trip. */
static void a_long_path_outgrows_windows(void)
{
	struct mmc_path path;

	mmc_path_init(&path);
	CHECK(!mmc_path_outgrows(&path, 125000000, 0));
	mmc_path_round_trip(&path, 25 * MMC_MS_NS);
	CHECK(mmc_path_outgrows(&path, 125000000, 6249999));
	CHECK(!mmc_path_outgrows(&path, 125000000, 6250000));
	mmc_path_round_trip(&path, MMC_MS_NS);
	CHECK(!mmc_path_outgrows(&path, 125000000, 0));
}

CHECK_MAIN(CHECK_TEST(a_long_path_outgrows_windows),
	   CHECK_TEST(converges_to_the_round_trip),
	   CHECK_TEST(learns_a_long_round_trip), CHECK_TEST(ignores_waits),
	   CHECK_TEST(adopts_a_round_trip), CHECK_TEST(bounded_round_trip),
	   CHECK_TEST(converges_to_the_rate), CHECK_TEST(bounded_rate),
	   CHECK_TEST(times), CHECK_TEST(silence_is_no_accident),
	   CHECK_TEST(one_silence_may_be_an_accident),
	   CHECK_TEST(a_lag_is_no_silence), CHECK_TEST(silence_does_not_last),
	   CHECK_TEST(lateness_is_no_silence),
	   CHECK_TEST(losses_are_remembered))
