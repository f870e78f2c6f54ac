/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault driver drops, copies and corrupts datagrams in both directions. */
#include "fault_traffic.h"

/*
 * Returns whether `count` of `trials` is within five standard deviations of what
 * `probability` predicts.
 */
static bool fits(unsigned count, unsigned trials, double probability)
{
	double mean = trials * probability;
	double off = count - mean;

	return off * off <= 25 * mean * (1 - probability) + 1;
}

/* ---- rates --------------------------------------------------------------- */

static void loss_and_duplicates_have_their_rates(void)
{
	struct mmc_endpoint *endpoint = memory_wrap("loss=0.1,seed=1");
	unsigned none = 0, twice = 0;

	for (unsigned i = 0; i < TRIALS; i++)
		none += through(endpoint, i) == 0;
	CHECK(fits(none, TRIALS, 0.1));
	memory_unwrap(endpoint);
	endpoint = memory_wrap("dup=0.02,seed=1");
	for (unsigned i = 0; i < TRIALS; i++)
		twice += through(endpoint, i) == 2;
	CHECK(fits(twice, TRIALS, 0.02));
	memory_unwrap(endpoint);
	endpoint = memory_wrap("loss=1;dup=1");
	CHECK_EQ(through(endpoint, 0), 0);
	memory_unwrap(endpoint);
	endpoint = memory_wrap("dup=1;dup=1");
	CHECK_EQ(through(endpoint, 0), 3);
	memory_unwrap(endpoint);
}

/* Losses come in periods, which are as many as their mean length says. */
static void losses_come_in_periods(void)
{
	struct mmc_endpoint *endpoint =
		memory_wrap("loss=0.1,loss_period=8,seed=3");
	unsigned lost = 0, periods = 0;
	bool before = false;

	for (unsigned i = 0; i < TRIALS; i++) {
		bool is_lost = through(endpoint, i) == 0;

		lost += is_lost;
		periods += is_lost && !before;
		before = is_lost;
	}
	CHECK(fits(periods, lost, 1.0 / 8));
	/* Counts vary as if there were fewer trials, by (2 * 8 - 1) times. */
	CHECK(fits(lost / 15, TRIALS / 15, 0.1));
	memory_unwrap(endpoint);
}

/* Returns the bit that differs, or -1 if none or more than one does. */
static int flipped_bit(const uint8_t *bytes, const uint8_t *original)
{
	int bit = -1;

	for (int i = 0; i < DATAGRAM_BYTES * 8; i++) {
		if (((bytes[i / 8] ^ original[i / 8]) >> i % 8 & 1) == 0)
			continue;
		if (bit >= 0)
			return -1;
		bit = i;
	}
	return bit;
}

/* Counts corrupted datagrams, and finds the highest bit that was flipped. */
static unsigned corrupt_some(enum mmc_checksum checksum, int *highest_bit)
{
	struct mmc_endpoint *endpoint = NULL;
	struct mmc_event events[64];
	uint8_t original[DATAGRAM_BYTES];
	unsigned ncorrupt = 0;

	CHECK_EQ(memory_try_wrap("corrupt=0.1,seed=5;corrupt=0.1,seed=6", 0,
				 checksum, &endpoint),
		 0);
	for (unsigned i = 0; i < TRIALS; i++) {
		int bit;

		memory_arrive(i, i);
		if (!CHECK_EQ(poll_all(endpoint, events), 1))
			break;
		datagram_write(original, i, i);
		if (memcmp(events[0].bytes, original, DATAGRAM_BYTES) == 0)
			continue;
		ncorrupt++;
		bit = flipped_bit(events[0].bytes, original);
		if (!CHECK(bit >= 0))
			break;
		if (bit > *highest_bit)
			*highest_bit = bit;
	}
	memory_unwrap(endpoint);
	return ncorrupt;
}

/* Corruption flips one bit among those that the checksum covers. */
static void corruption_flips_one_bit_that_shows(void)
{
	int highest_bit = 0;

	CHECK(fits(corrupt_some(MMC_CHECKSUM_HEADER, &highest_bit), TRIALS,
		   0.19));
	CHECK_EQ(highest_bit, MMC_HEADER_BYTES * 8 - 1);
	CHECK(fits(corrupt_some(MMC_CHECKSUM_FULL, &highest_bit), TRIALS,
		   0.19));
	CHECK_EQ(highest_bit, DATAGRAM_BYTES * 8 - 1);
}

/* ---- replay and filters -------------------------------------------------- */

/* Lets 2,000 datagrams arrive; returns a hash of those that come out, in order. */
static uint64_t digest(const char *setting, uint32_t rank)
{
	struct mmc_endpoint *endpoint = NULL;
	struct mmc_prng prng = { .state = 0 };
	struct mmc_event events[64];

	CHECK_EQ(memory_try_wrap(setting, rank, MMC_CHECKSUM_FULL, &endpoint),
		 0);
	for (unsigned i = 0; i < 2000; i++) {
		unsigned count;

		memory.now_ns += 10 * MMC_US_NS;
		memory_arrive(i, i);
		count = poll_all(endpoint, events);
		for (unsigned k = 0; k < count; k++) {
			prng.state ^= datagram_number(events[k].bytes);
			prng.state = mmc_prng_next(&prng);
		}
	}
	memory_unwrap(endpoint);
	return prng.state;
}

static void a_seed_replays_a_run(void)
{
	static const char one[] =
		"loss=0.1,dup=0.1,reorder=0.1,corrupt=0.1,seed=99";
	static const char other[] =
		"loss=0.1,dup=0.1,reorder=0.1,corrupt=0.1,seed=98";
	static const char second[] =
		"seed=99;loss=0.1,dup=0.1,reorder=0.1,corrupt=0.1,seed=99";

	CHECK_EQ(digest(one, 0), digest(one, 0));
	CHECK(digest(one, 0) != digest(other, 0));
	CHECK(digest(one, 0) != digest(one, 1));
	CHECK(digest(one, 0) != digest(second, 0));
	CHECK_EQ(digest("loss=0.5,rank=1", 0), digest("loss=0", 0));
	CHECK(digest("loss=0.5,rank=1+2", 2) != digest("loss=0", 2));
}

static void filters_choose_kind_and_direction(void)
{
	static const struct {
		const char *setting;
		/* How many come out, of one datagram of each kind. */
		unsigned multicast, repair, control;
		unsigned sent; /* how many of one multicast are sent */
	} cases[] = {
		{ "loss=1", 0, 0, 1, 1 },
		{ "loss=1,kind=all", 0, 0, 0, 1 },
		{ "loss=1,kind=control", 1, 1, 0, 1 },
		{ "loss=1,kind=repair", 1, 0, 1, 1 },
		{ "loss=1,kind=multicast+control", 0, 1, 0, 1 },
		{ "loss=1,dir=tx", 1, 1, 1, 0 },
		{ "loss=1,dir=tx,kind=repair", 1, 1, 1, 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mmc_endpoint *endpoint = memory_wrap(cases[i].setting);

		CHECK_EQ(through(endpoint, 5), cases[i].multicast);
		CHECK_EQ(through(endpoint, 5 | MMC_INDEX_REPAIR),
			 cases[i].repair);
		CHECK_EQ(through(endpoint, MMC_INDEX_CONTROL),
			 cases[i].control);
		send_number(endpoint, 5, 0);
		CHECK_EQ(memory.nsent, cases[i].sent);
		memory_unwrap(endpoint);
	}
}

static void short_datagrams_are_harmless(void)
{
	struct mmc_endpoint *endpoint =
		memory_wrap("corrupt=1,delay_us=1,dup=1,kind=all");
	struct mmc_event events[64];

	for (uint32_t nbytes = 0; nbytes < MMC_HEADER_BYTES; nbytes++) {
		memory_arrive(0, 0);
		memory.inbox[0].nbytes = nbytes;
		CHECK_EQ(poll_all(endpoint, events), 0);
		memory.now_ns += MMC_US_NS;
		CHECK_EQ(poll_all(endpoint, events), 2);
		CHECK_EQ(events[0].nbytes, nbytes);
	}
	memory_unwrap(endpoint);
}

/* ---- time ---------------------------------------------------------------- */

/* A payload that lies apart from its header is held back with it, in one piece. */
static void a_payload_may_lie_apart(void)
{
	struct mmc_endpoint *endpoint =
		memory_wrap("delay_us=1,dup=1,kind=all");
	uint8_t payload[PAYLOAD_BYTES];
	struct mmc_event events[64];

	for (uint32_t nbytes = 0; nbytes <= DATAGRAM_BYTES; nbytes++) {
		memory_arrive(1, 0);
		mmc_put_u32(payload, 55);
		memory.inbox[0].nbytes = nbytes;
		memory.inbox[0].body = payload;
		mmc_put_u32(memory.arrived[0].bytes + MMC_HEADER_BYTES, 99);
		CHECK_EQ(poll_all(endpoint, events), 0);
		memset(payload, 0, sizeof(payload));
		memory.now_ns += MMC_US_NS;
		CHECK_EQ(poll_all(endpoint, events), 2);
		for (unsigned k = 0; k < 2; k++) {
			CHECK_EQ(events[k].nbytes, nbytes);
			CHECK(events[k].body == NULL);
		}
		if (nbytes < DATAGRAM_BYTES)
			continue;
		CHECK_EQ(mmc_get_u32(events[0].bytes + MMC_HEADER_BYTES), 99);
		CHECK_EQ(mmc_get_u32(events[0].bytes + DATAGRAM_BYTES - 4), 55);
	}
	memory_unwrap(endpoint);
}

/* ---- sending ------------------------------------------------------------- */

static void sent_datagrams_meet_the_same_faults(void)
{
	struct mmc_endpoint *endpoint =
		memory_wrap("dir=tx,loss=0.1,dup=0.1,reorder=0.1,seed=8");
	static uint8_t seen[TRIALS];
	unsigned nlost = 0, ntwice = 0;
	struct mmc_event events[64];

	for (unsigned i = 0; i < TRIALS; i++)
		send_number(endpoint, i, i);
	memory.now_ns += MMC_S_NS;
	CHECK_EQ(poll_all(endpoint, events), 0);
	memset(seen, 0, sizeof(seen));
	for (unsigned i = 0; i < memory.nsent; i++) {
		const struct datagram *sent = &memory.sent[i];
		uint64_t number = datagram_number(sent->bytes);

		if (!CHECK(number < TRIALS) ||
		    !CHECK_EQ(sent->nbytes, DATAGRAM_BYTES) ||
		    !CHECK_EQ(sent->parcel.subgroup, 2) ||
		    !CHECK_EQ(sent->parcel.peer, MMC_PEER_ALL))
			break;
		seen[number]++;
	}
	for (unsigned i = 0; i < TRIALS; i++) {
		nlost += seen[i] == 0;
		ntwice += seen[i] == 2;
	}
	CHECK(fits(nlost, TRIALS, 0.1));
	CHECK(fits(ntwice, TRIALS, 0.09));
	memory_unwrap(endpoint);
}

/* The parcels that no fault hits are sent in their order. */
static void runs_that_pass_stay_together(void)
{
	struct mmc_endpoint *endpoint =
		memory_wrap("dir=tx,kind=repair,loss=1");
	uint8_t bytes[6][DATAGRAM_BYTES];
	struct mmc_parcel parcels[6];

	for (unsigned i = 0; i < 6; i++) {
		datagram_write(bytes[i],
			       i == 0 || i == 3 ? MMC_INDEX_REPAIR : i, i);
		parcels[i] = (struct mmc_parcel){
			.head = bytes[i],
			.head_bytes = DATAGRAM_BYTES,
			.peer = i,
		};
	}
	CHECK_EQ(endpoint->driver->send(endpoint, parcels, 6), 0);
	if (CHECK_EQ(memory.nsent, 4)) {
		CHECK_EQ(memory.sent[0].parcel.peer, 1);
		CHECK_EQ(memory.sent[1].parcel.peer, 2);
		CHECK_EQ(memory.sent[2].parcel.peer, 4);
		CHECK_EQ(memory.sent[3].parcel.peer, 5);
	}
	memory_unwrap(endpoint);
}

CHECK_MAIN(CHECK_TEST(loss_and_duplicates_have_their_rates),
	   CHECK_TEST(losses_come_in_periods),
	   CHECK_TEST(corruption_flips_one_bit_that_shows),
	   CHECK_TEST(a_seed_replays_a_run),
	   CHECK_TEST(filters_choose_kind_and_direction),
	   CHECK_TEST(short_datagrams_are_harmless),
	   CHECK_TEST(a_payload_may_lie_apart),
	   CHECK_TEST(sent_datagrams_meet_the_same_faults),
	   CHECK_TEST(runs_that_pass_stay_together))
