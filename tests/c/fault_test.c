/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault driver over an endpoint in memory, whose clock the test turns. */
#include "check.h"

#include <mpimcast/mmc.h>

#include "core/codec.h"
#include "core/prng.h"
#include "drivers/fault/fault.h"
#include "drivers/fault/held.h"

#define BYTES_MAX 32
#define PAYLOAD_BYTES 8
#define DATAGRAM_BYTES (MMC_HEADER_BYTES + PAYLOAD_BYTES)
#define SENT_MAX 65536

struct datagram {
	uint8_t bytes[BYTES_MAX];
	uint32_t nbytes;
	uint32_t source;
	struct mmc_parcel parcel;
};

/* Delivers what `arrive` puts there, and remembers what was sent. */
struct memory {
	struct mmc_endpoint endpoint;
	uint64_t now_ns;
	struct mmc_event inbox[64];
	struct datagram arrived[64];
	unsigned narrived;
	struct datagram sent[SENT_MAX];
	unsigned nsent;
	bool closed;
};

static struct memory memory;

static uint64_t memory_now_ns(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	return memory.now_ns;
}

static int memory_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		       unsigned nmax)
{
	unsigned count = memory.narrived < nmax ? memory.narrived : nmax;

	(void)endpoint;
	memcpy(events, memory.inbox, count * sizeof(*events));
	memory.narrived -= count;
	memmove(memory.inbox, memory.inbox + count,
		memory.narrived * sizeof(*events));
	return (int)count;
}

static int memory_send(struct mmc_endpoint *endpoint,
		       const struct mmc_parcel *parcels, unsigned nparcels)
{
	(void)endpoint;
	for (unsigned i = 0; i < nparcels && memory.nsent < SENT_MAX; i++) {
		struct datagram *sent = &memory.sent[memory.nsent++];
		const struct mmc_parcel *parcel = &parcels[i];

		sent->parcel = *parcel;
		sent->nbytes = parcel->head_bytes + parcel->body_bytes;
		memcpy(sent->bytes, parcel->head, parcel->head_bytes);
		if (parcel->body_bytes > 0)
			memcpy(sent->bytes + parcel->head_bytes, parcel->body,
			       parcel->body_bytes);
	}
	return 0;
}

static void memory_close(struct mmc_endpoint *endpoint)
{
	(void)endpoint;
	memory.closed = true;
}

static int memory_place(struct mmc_endpoint *endpoint, void *to,
			const void *from, size_t nbytes, uint64_t cookie)
{
	(void)endpoint;
	(void)cookie;
	memcpy(to, from, nbytes);
	return 0;
}

static const struct mmc_driver memory_driver = {
	.name = "memory",
	.now_ns = memory_now_ns,
	.poll = memory_poll,
	.send = memory_send,
	.close = memory_close,
};

static const struct mmc_driver placing_driver = {
	.name = "memory",
	.now_ns = memory_now_ns,
	.poll = memory_poll,
	.send = memory_send,
	.place = memory_place,
	.close = memory_close,
};

static int try_wrap(const char *setting, uint32_t rank,
		    enum mmc_checksum checksum, struct mmc_endpoint **endpoint)
{
	memset(&memory, 0, sizeof(memory));
	memory.endpoint.driver = &memory_driver;
	return mmc_fault_wrap(setting, rank, &memory.endpoint, checksum,
			      endpoint);
}

static struct mmc_endpoint *wrap(const char *setting)
{
	struct mmc_endpoint *endpoint = NULL;

	if (!CHECK_EQ(try_wrap(setting, 0, MMC_CHECKSUM_FULL, &endpoint), 0))
		exit(1);
	return endpoint;
}

static void write_datagram(uint8_t *bytes, uint32_t index, uint64_t number)
{
	struct mmc_header header = { .epoch = 7, .index = index };

	mmc_header_encode(bytes, &header, DATAGRAM_BYTES, MMC_CHECKSUM_OFF);
	mmc_put_u64(bytes + MMC_HEADER_BYTES, number);
}

/* Puts a datagram with the given index and number into the inbox. */
static void arrive(uint32_t index, uint64_t number)
{
	unsigned i = memory.narrived++;

	write_datagram(memory.arrived[i].bytes, index, number);
	memory.inbox[i] = (struct mmc_event){
		.kind = MMC_EVENT_DATAGRAM,
		.bytes = memory.arrived[i].bytes,
		.nbytes = DATAGRAM_BYTES,
		.source = 3,
	};
}

static uint64_t number_of(const uint8_t *bytes)
{
	return mmc_get_u64(bytes + MMC_HEADER_BYTES);
}

static unsigned poll_all(struct mmc_endpoint *endpoint,
			 struct mmc_event *events)
{
	int rv = endpoint->driver->poll(endpoint, events, 64);

	CHECK(rv >= 0);
	return rv < 0 ? 0 : (unsigned)rv;
}

/* Lets one datagram of `index` arrive; returns how many come out. */
static unsigned through(struct mmc_endpoint *endpoint, uint32_t index)
{
	struct mmc_event events[64];

	arrive(index, 0);
	return poll_all(endpoint, events);
}

static void send_number(struct mmc_endpoint *endpoint, uint32_t index,
			uint64_t number)
{
	uint8_t bytes[DATAGRAM_BYTES];
	struct mmc_parcel parcel = {
		.head = bytes,
		.head_bytes = MMC_HEADER_BYTES,
		.body = bytes + MMC_HEADER_BYTES,
		.body_bytes = PAYLOAD_BYTES,
		.peer = MMC_PEER_ALL,
		.subgroup = 2,
	};

	write_datagram(bytes, index, number);
	CHECK_EQ(endpoint->driver->send(endpoint, &parcel, 1), 0);
	memset(bytes, 0xee, sizeof(bytes));
}

static void shut(struct mmc_endpoint *endpoint)
{
	endpoint->driver->close(endpoint);
	CHECK(memory.closed);
}

/* Whether `count` of `trials` fits a probability within five deviations. */
static bool fits(unsigned count, unsigned trials, double probability)
{
	double mean = trials * probability;
	double off = count - mean;

	return off * off <= 25 * mean * (1 - probability) + 1;
}

#define TRIALS 40000u

/* ---- settings ------------------------------------------------------------ */

static void settings_are_parsed_strictly(void)
{
	static const struct {
		const char *text;
		const char *reason; /* NULL: well-formed */
	} cases[] = {
		{ "", NULL },
		{ "loss=0.1,dup=0.02,reorder=0.05,seed=99", NULL },
		{ "loss=1;loss=0;loss=1.000;loss=0.123456789123", NULL },
		{ "seed=18446744073709551615", NULL },
		{ "rank=0+3+17,dir=tx,kind=control", NULL },
		{ "kind=multicast+control,stall_ms=20,delay_us=5", NULL },
		{ "kind=all,corrupt=0.5", NULL },
		{ "los=0.1", "there are loss, dup" },
		{ " loss=0.1", "unknown key ' loss'" },
		{ "loss", "a number from 0 to 1" },
		{ "loss=", "a number from 0 to 1" },
		{ "loss=1.1", "a number from 0 to 1" },
		{ "loss=2", "a number from 0 to 1" },
		{ "loss=.5", "a number from 0 to 1" },
		{ "loss=1.", "a number from 0 to 1" },
		{ "loss=-0.1", "a number from 0 to 1" },
		{ "loss=1e-3", "a number from 0 to 1" },
		{ "loss=0.1 ", "a number from 0 to 1" },
		{ "loss=0,1", "unknown key '1'" },
		{ "loss=0.1,loss=0.1", "twice" },
		{ "loss=0.1,", "unknown key ''" },
		{ "loss=0.1;", "unknown key ''" },
		{ ";", "unknown key ''" },
		{ "=1", "unknown key ''" },
		{ "loss==1", "a number from 0 to 1" },
		{ "delay_us=10000001", "0 to 10000000" },
		{ "stall_ms=10001", "0 to 10000" },
		{ "stall_ms=1,dir=tx", "dir=tx" },
		{ "seed=18446744073709551616", "2^64" },
		{ "rank=", "joined by '+'" },
		{ "rank=1+", "joined by '+'" },
		{ "rank=1++2", "joined by '+'" },
		{ "rank=a", "joined by '+'" },
		{ "dir=up", "rx or tx" },
		{ "kind=data", "multicast, control, repair" },
		{ "kind=repair+", "multicast, control, repair" },
		{ "seed=1;seed=1;seed=1;seed=1;seed=1;seed=1;seed=1;seed=1;"
		  "seed=1",
		  "more than 8" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rv = mmc_fault_check(cases[i].text);

		if (cases[i].reason == NULL) {
			CHECK_EQ(rv, 0);
			continue;
		}
		if (!CHECK_EQ(rv, -MMC_EINVAL) ||
		    !CHECK(strstr(mmc_last_error(), cases[i].reason) != NULL))
			fprintf(stderr, "'%s' gave '%s'\n", cases[i].text,
				mmc_last_error());
	}
}

static void overlong_settings_are_refused(void)
{
	char text[MMC_FAULT_SIZE + 1];

	memset(text, '0', sizeof(text) - 1);
	memcpy(text, "seed=", 5);
	text[sizeof(text) - 1] = '\0';
	CHECK_EQ(mmc_fault_check(text), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "characters") != NULL);
}

static void unnoticed_corruption_is_refused(void)
{
	static const char both[] = "corrupt=0.1;corrupt=0.1,dir=tx,rank=5";
	struct mmc_endpoint *endpoint = NULL;

	CHECK_EQ(try_wrap("corrupt=0.1", 0, MMC_CHECKSUM_OFF, &endpoint),
		 -MMC_EINVAL);
	CHECK(memory.closed);
	CHECK(strstr(mmc_last_error(), "CHECKSUM") != NULL);
	CHECK_EQ(try_wrap(both, 0, MMC_CHECKSUM_HEADER, &endpoint),
		 -MMC_EINVAL);
	CHECK(memory.closed);
	CHECK_EQ(try_wrap("nonsense", 0, MMC_CHECKSUM_FULL, &endpoint),
		 -MMC_EINVAL);
	CHECK(memory.closed);
	CHECK(endpoint == NULL);
	CHECK_EQ(try_wrap(both, 0, MMC_CHECKSUM_FULL, &endpoint), 0);
	shut(endpoint);
}

static void nothing_is_wrapped_without_need(void)
{
	struct mmc_endpoint *endpoint = wrap("");

	CHECK(endpoint == &memory.endpoint);
	endpoint = wrap("loss=0");
	CHECK(endpoint->driver->place == NULL);
	shut(endpoint);
	memory.endpoint.driver = &placing_driver;
	CHECK_EQ(mmc_fault_wrap("loss=0", 0, &memory.endpoint, MMC_CHECKSUM_OFF,
				&endpoint),
		 0);
	CHECK(endpoint->driver->place != NULL);
	endpoint->driver->close(endpoint);
}

/* ---- rates --------------------------------------------------------------- */

static void loss_and_duplicates_have_their_rates(void)
{
	struct mmc_endpoint *endpoint = wrap("loss=0.1,seed=1");
	unsigned none = 0, twice = 0;

	for (unsigned i = 0; i < TRIALS; i++)
		none += through(endpoint, i) == 0;
	CHECK(fits(none, TRIALS, 0.1));
	shut(endpoint);
	endpoint = wrap("dup=0.02,seed=1");
	for (unsigned i = 0; i < TRIALS; i++)
		twice += through(endpoint, i) == 2;
	CHECK(fits(twice, TRIALS, 0.02));
	shut(endpoint);
	endpoint = wrap("loss=1;dup=1");
	CHECK_EQ(through(endpoint, 0), 0);
	shut(endpoint);
	endpoint = wrap("dup=1;dup=1");
	CHECK_EQ(through(endpoint, 0), 3);
	shut(endpoint);
}

/* The bit that differs, or -1 if none or more than one does. */
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

/* Counts corrupted datagrams and finds the highest bit that was flipped. */
static unsigned corrupt_some(enum mmc_checksum checksum, int *highest_bit)
{
	struct mmc_endpoint *endpoint = NULL;
	struct mmc_event events[64];
	uint8_t original[DATAGRAM_BYTES];
	unsigned ncorrupt = 0;

	CHECK_EQ(try_wrap("corrupt=0.1,seed=5;corrupt=0.1,seed=6", 0, checksum,
			  &endpoint),
		 0);
	for (unsigned i = 0; i < TRIALS; i++) {
		int bit;

		arrive(i, i);
		if (!CHECK_EQ(poll_all(endpoint, events), 1))
			break;
		write_datagram(original, i, i);
		if (memcmp(events[0].bytes, original, DATAGRAM_BYTES) == 0)
			continue;
		ncorrupt++;
		bit = flipped_bit(events[0].bytes, original);
		if (!CHECK(bit >= 0))
			break;
		if (bit > *highest_bit)
			*highest_bit = bit;
	}
	shut(endpoint);
	return ncorrupt;
}

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

/* A number for all that comes out of 2,000 datagrams, in its order. */
static uint64_t digest(const char *setting, uint32_t rank)
{
	struct mmc_endpoint *endpoint = NULL;
	struct mmc_prng prng = { .state = 0 };
	struct mmc_event events[64];

	CHECK_EQ(try_wrap(setting, rank, MMC_CHECKSUM_FULL, &endpoint), 0);
	for (unsigned i = 0; i < 2000; i++) {
		unsigned count;

		memory.now_ns += 10 * MMC_US_NS;
		arrive(i, i);
		count = poll_all(endpoint, events);
		for (unsigned k = 0; k < count; k++) {
			prng.state ^= number_of(events[k].bytes);
			prng.state = mmc_prng_next(&prng);
		}
	}
	shut(endpoint);
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
		unsigned multicast, repair, control; /* of one each */
		unsigned sent;			     /* multicast ones */
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
		struct mmc_endpoint *endpoint = wrap(cases[i].setting);

		CHECK_EQ(through(endpoint, 5), cases[i].multicast);
		CHECK_EQ(through(endpoint, 5 | MMC_INDEX_REPAIR),
			 cases[i].repair);
		CHECK_EQ(through(endpoint, MMC_INDEX_CONTROL),
			 cases[i].control);
		send_number(endpoint, 5, 0);
		CHECK_EQ(memory.nsent, cases[i].sent);
		shut(endpoint);
	}
}

static void short_datagrams_are_harmless(void)
{
	struct mmc_endpoint *endpoint =
		wrap("corrupt=1,delay_us=1,dup=1,kind=all");
	struct mmc_event events[64];

	for (uint32_t nbytes = 0; nbytes < MMC_HEADER_BYTES; nbytes++) {
		arrive(0, 0);
		memory.inbox[0].nbytes = nbytes;
		CHECK_EQ(poll_all(endpoint, events), 0);
		memory.now_ns += MMC_US_NS;
		CHECK_EQ(poll_all(endpoint, events), 2);
		CHECK_EQ(events[0].nbytes, nbytes);
	}
	shut(endpoint);
}

/* ---- time ---------------------------------------------------------------- */

static void reordered_datagrams_come_a_little_later(void)
{
	struct mmc_endpoint *endpoint = wrap("reorder=0.2,seed=3");
	struct mmc_event events[64];
	unsigned total = 0, nlate = 0;
	uint64_t next = 0;

	for (unsigned i = 0; i < TRIALS; i++) {
		unsigned count;

		arrive(i, i);
		count = poll_all(endpoint, events);
		for (unsigned k = 0; k < count; k++) {
			uint64_t number = number_of(events[k].bytes);

			total++;
			if (number >= next)
				next = number + 1;
			else
				nlate++;
			CHECK(number + 64 > i);
		}
	}
	CHECK(nlate > TRIALS / 8 && nlate < TRIALS / 4);
	CHECK(total + 16 > TRIALS && total <= TRIALS);
	shut(endpoint);
}

static void a_reordered_last_one_is_not_forgotten(void)
{
	struct mmc_endpoint *endpoint = wrap("reorder=1");
	struct mmc_event events[64];

	memory.now_ns = MMC_S_NS;
	arrive(0, 42);
	CHECK_EQ(poll_all(endpoint, events), 0);
	CHECK_EQ(endpoint->driver->deadline_ns(endpoint), MMC_S_NS + MMC_MS_NS);
	memory.now_ns += MMC_MS_NS;
	CHECK_EQ(poll_all(endpoint, events), 1);
	CHECK_EQ(number_of(events[0].bytes), 42);
	CHECK_EQ(events[0].source, 3);
	CHECK_EQ(endpoint->driver->deadline_ns(endpoint), MMC_NEVER_NS);
	shut(endpoint);
}

static void delays_keep_the_order(void)
{
	struct mmc_endpoint *endpoint =
		wrap("delay_us=100;delay_us=50;dir=tx,delay_us=30");
	struct mmc_event events[64];

	for (unsigned i = 0; i < 20; i += 2) {
		arrive(i, i);
		arrive(i + 1, i + 1);
		CHECK_EQ(poll_all(endpoint, events), 0);
		memory.now_ns += MMC_US_NS;
	}
	CHECK_EQ(endpoint->driver->deadline_ns(endpoint), 150 * MMC_US_NS);
	memory.now_ns = 154 * MMC_US_NS;
	CHECK_EQ(poll_all(endpoint, events), 10);
	for (unsigned i = 0; i < 10; i++)
		CHECK_EQ(number_of(events[i].bytes), i);
	send_number(endpoint, 0, 77);
	CHECK_EQ(memory.nsent, 0);
	memory.now_ns += 30 * MMC_US_NS;
	CHECK_EQ(poll_all(endpoint, events), 10);
	CHECK_EQ(memory.nsent, 1);
	CHECK_EQ(number_of(memory.sent[0].bytes), 77);
	shut(endpoint);
}

static void a_full_pool_loses(void)
{
	struct mmc_endpoint *endpoint = wrap("delay_us=10");
	struct mmc_event events[64];
	unsigned count = 0, more;

	for (unsigned i = 0; i < MMC_FAULT_HELD_MAX + 100; i++)
		CHECK_EQ(through(endpoint, i), 0);
	memory.now_ns += 10 * MMC_US_NS;
	while ((more = poll_all(endpoint, events)) > 0)
		count += more;
	CHECK_EQ(count, MMC_FAULT_HELD_MAX);
	CHECK_EQ(through(endpoint, 0), 0);
	memory.now_ns += 10 * MMC_US_NS;
	CHECK_EQ(poll_all(endpoint, events), 1);
	shut(endpoint);
}

static void a_stall_keeps_everything_for_its_end(void)
{
	struct mmc_endpoint *endpoint = wrap("stall_ms=20,seed=4");
	struct mmc_event events[64];
	unsigned ntold = 0, nstalled = 0, waiting = 0;

	for (unsigned ms = 0; ms < 1000; ms++) {
		unsigned count;

		memory.now_ns += MMC_MS_NS;
		arrive(MMC_INDEX_CONTROL, ms);
		count = poll_all(endpoint, events);
		waiting += 1 - count;
		if (count == 0) {
			uint64_t end_ns =
				endpoint->driver->deadline_ns(endpoint);

			nstalled++;
			CHECK(end_ns > memory.now_ns);
			CHECK(end_ns <= memory.now_ns + 20 * MMC_MS_NS);
		}
		for (unsigned k = 0; k < count; k++)
			ntold += number_of(events[k].bytes) <= ms;
	}
	CHECK_EQ(nstalled, 200);
	CHECK_EQ(ntold + waiting, 1000);
	CHECK(waiting <= 20);
	shut(endpoint);
}

static void placed_events_pass_a_stall(void)
{
	struct mmc_endpoint *endpoint = wrap("stall_ms=10000,loss=1");
	struct mmc_event events[64];
	unsigned nplaced = 0;

	for (unsigned s = 0; s < 50; s++) {
		memory.now_ns += MMC_S_NS;
		memory.narrived = 1;
		memory.inbox[0] = (struct mmc_event){
			.kind = MMC_EVENT_PLACED,
			.cookie = s,
		};
		CHECK_EQ(poll_all(endpoint, events), 1);
		nplaced += events[0].kind == MMC_EVENT_PLACED &&
			   events[0].cookie == s;
	}
	CHECK_EQ(nplaced, 50);
	shut(endpoint);
}

/* ---- sending ------------------------------------------------------------- */

static void sent_datagrams_meet_the_same_faults(void)
{
	struct mmc_endpoint *endpoint =
		wrap("dir=tx,loss=0.1,dup=0.1,reorder=0.1,seed=8");
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
		uint64_t number = number_of(sent->bytes);

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
	shut(endpoint);
}

static void runs_that_pass_stay_together(void)
{
	struct mmc_endpoint *endpoint = wrap("dir=tx,kind=repair,loss=1");
	uint8_t bytes[6][DATAGRAM_BYTES];
	struct mmc_parcel parcels[6];

	for (unsigned i = 0; i < 6; i++) {
		write_datagram(bytes[i],
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
	shut(endpoint);
}

CHECK_MAIN(CHECK_TEST(settings_are_parsed_strictly),
	   CHECK_TEST(overlong_settings_are_refused),
	   CHECK_TEST(unnoticed_corruption_is_refused),
	   CHECK_TEST(nothing_is_wrapped_without_need),
	   CHECK_TEST(loss_and_duplicates_have_their_rates),
	   CHECK_TEST(corruption_flips_one_bit_that_shows),
	   CHECK_TEST(a_seed_replays_a_run),
	   CHECK_TEST(filters_choose_kind_and_direction),
	   CHECK_TEST(short_datagrams_are_harmless),
	   CHECK_TEST(reordered_datagrams_come_a_little_later),
	   CHECK_TEST(a_reordered_last_one_is_not_forgotten),
	   CHECK_TEST(delays_keep_the_order), CHECK_TEST(a_full_pool_loses),
	   CHECK_TEST(a_stall_keeps_everything_for_its_end),
	   CHECK_TEST(placed_events_pass_a_stall),
	   CHECK_TEST(sent_datagrams_meet_the_same_faults),
	   CHECK_TEST(runs_that_pass_stay_together))
