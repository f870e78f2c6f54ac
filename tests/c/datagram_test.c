/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever operation a team expects chunks of, it reads the same headers, and refuses the
 * same damaged ones, as mmc_header_decode(). Runs end where a chunk does not follow.
 */
#include "engine/datagram.h"

#include "check.h"
#include "support/prng.h"

#define CHUNK_BYTES 24
#define FULL_BYTES (MMC_HEADER_BYTES + CHUNK_BYTES)
#define NEVENTS 12

static struct mmc_team team;
static uint8_t datagrams[NEVENTS][FULL_BYTES + 1];
static struct mmc_event events[NEVENTS];

static void open_team(enum mmc_checksum checksum)
{
	team = (struct mmc_team){
		.options = { .chunk_bytes = CHUNK_BYTES, .checksum = checksum },
	};
}

/* Makes event `i` one of rank 3 that carries a chunk of `epoch`. */
static void make(unsigned i, uint32_t epoch, uint32_t index, uint32_t nbytes)
{
	const struct mmc_header header = { .channel = UINT64_C(7) << 16,
					   .epoch = epoch,
					   .index = index };

	mmc_header_encode(datagrams[i], &header, nbytes, team.options.checksum);
	events[i] = (struct mmc_event){ .kind = MMC_EVENT_DATAGRAM,
					.bytes = datagrams[i],
					.nbytes = nbytes,
					.source = 3 };
}

/* Checks that the team reads event 0 as mmc_header_decode() does. */
static void check_decode(void)
{
	struct mmc_header right = { .channel = 0 };
	struct mmc_header header = right;
	int rv = mmc_header_decode(&right, datagrams[0], events[0].nbytes,
				   team.options.checksum);

	CHECK_EQ(mmc_team_decode(&team, &events[0], &header), rv);
	if (rv != 0)
		return;
	CHECK_EQ(header.channel, right.channel);
	CHECK_EQ(header.epoch, right.epoch);
	CHECK_EQ(header.index, right.index);
}

static void same_headers(void)
{
	static const uint32_t kinds[] = { 0, MMC_INDEX_REPAIR,
					  MMC_INDEX_CONTROL };
	struct mmc_prng prng = { .state = check_seed() };

	for (unsigned n = 0; n < 20000; n++) {
		struct mmc_header expected = { .channel = UINT64_C(7) << 16 };
		uint32_t index = (uint32_t)mmc_prng_below(&prng, 1 << 20);

		open_team(n % 2 == 0 ? MMC_CHECKSUM_HEADER : MMC_CHECKSUM_OFF);
		expected.epoch = (uint32_t)mmc_prng_below(&prng, 3);
		mmc_team_expect(&team, &expected);
		make(0, (uint32_t)mmc_prng_below(&prng, 3),
		     index | kinds[mmc_prng_below(&prng, 3)],
		     FULL_BYTES + 1 - (uint32_t)mmc_prng_below(&prng, 3));
		check_decode();
		datagrams[0][mmc_prng_below(&prng, MMC_HEADER_BYTES)] ^=
			(uint8_t)(1 << mmc_prng_below(&prng, 8));
		check_decode();
	}
}

/* An empty datagram is no chunk, though nothing has been heard that was longer. */
static void nothing_is_no_header(void)
{
	struct mmc_header header;

	open_team(MMC_CHECKSUM_HEADER);
	memset(datagrams[0], 0, sizeof(datagrams[0]));
	events[0] = (struct mmc_event){ .kind = MMC_EVENT_DATAGRAM,
					.bytes = datagrams[0] };
	CHECK_EQ(mmc_team_decode(&team, &events[0], &header), -MMC_ESHORT);
}

/* Returns how long the run is that begins with the first event. */
static unsigned run_length(void)
{
	struct mmc_header first;

	CHECK_EQ(mmc_team_decode(&team, &events[0], &first), 0);
	mmc_team_expect(&team, &first);
	return mmc_team_find_run(&team, events, NEVENTS, &first);
}

static void make_run(void)
{
	for (unsigned i = 0; i < NEVENTS; i++)
		make(i, 2, 100 + i, FULL_BYTES);
}

static void runs_end(void)
{
	open_team(MMC_CHECKSUM_HEADER);
	make_run();
	CHECK_EQ(run_length(), NEVENTS);
	make(5, 2, 100 + 6, FULL_BYTES); /* a chunk is missing */
	CHECK_EQ(run_length(), 5);
	make(5, 3, 100 + 5, FULL_BYTES); /* of another operation */
	CHECK_EQ(run_length(), 5);
	make(5, 2, (100 + 5) | MMC_INDEX_REPAIR, FULL_BYTES);
	CHECK_EQ(run_length(), 5);
	make(5, 2, 100 + 5, FULL_BYTES - 1); /* the last of a block */
	CHECK_EQ(run_length(), 6);
	make_run();
	events[7].source = 4;
	CHECK_EQ(run_length(), 7);
	make_run();
	datagrams[8][15] ^= 1;
	CHECK_EQ(run_length(), 8);
	make_run();
	events[1].kind = MMC_EVENT_PLACED;
	CHECK_EQ(run_length(), 1);
}

CHECK_MAIN(CHECK_TEST(same_headers), CHECK_TEST(nothing_is_no_header),
	   CHECK_TEST(runs_end))
