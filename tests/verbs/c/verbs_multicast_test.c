/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams to a group: who hears them, who sent them, and where they lie. */
#include "support/bits.h"
#include "verbs_team.h"

static void multicast_reaches_all_others_but_oneself(uint32_t nsubgroups,
						     enum mmc_join join)
{
	struct mmc_team_options options = team_options(4);
	struct team team;

	options.subgroups = nsubgroups;
	options.join = join;
	team_open(&team, &options);
	team_connect(&team);
	for (uint32_t sender = 0; sender < team.nranks; sender++) {
		for (uint32_t i = 0; i < nsubgroups; i++)
			send_to(team.endpoints[sender], MMC_PEER_ALL, i, false,
				i, 100);
		for (uint32_t rank = 0; rank < team.nranks; rank++) {
			uint64_t heard = 0;

			for (uint32_t i = 0; i < nsubgroups && rank != sender;
			     i++) {
				struct mmc_event event =
					receive_one(team.endpoints[rank]);

				CHECK_EQ(event.kind, MMC_EVENT_DATAGRAM);
				CHECK_EQ(event.source, sender);
				CHECK_EQ(event.nbytes, MMC_HEADER_BYTES + 100);
				CHECK_BYTES(body_of(&event), pattern, 100);
				heard |= UINT64_C(1) << index_of(&event);
			}
			CHECK(is_quiet(team.endpoints[rank]));
			CHECK_EQ(heard,
				 rank == sender
					 ? 0
					 : UINT64_MAX >> (64 - nsubgroups));
		}
	}
	team_close(&team);
}

static void joined_through_the_connection_manager(void)
{
	multicast_reaches_all_others_but_oneself(1, MMC_JOIN_CM);
	multicast_reaches_all_others_but_oneself(4, MMC_JOIN_CM);
}

static void joined_by_sockets(void)
{
	multicast_reaches_all_others_but_oneself(1, MMC_JOIN_ATTACH);
	multicast_reaches_all_others_but_oneself(25, MMC_JOIN_ATTACH);
}

static void joined_either_way(void)
{
	multicast_reaches_all_others_but_oneself(3, MMC_JOIN_AUTO);
}

static void bodies_of_all_sizes_lie_apart(void)
{
	static const uint32_t sizes[] = { 0, 1, 63, 1456, CHUNK_BYTES };
	struct team team;

	team_start(&team, 2);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct mmc_event event;

		send_to(team.endpoints[1], MMC_PEER_ALL, 0, false, 7, sizes[i]);
		event = receive_one(team.endpoints[0]);
		CHECK_EQ(event.nbytes, MMC_HEADER_BYTES + sizes[i]);
		CHECK_EQ(index_of(&event), 7);
		CHECK_BYTES(event.body, pattern, sizes[i]);
		/* Bodies are aligned, since they are copied to user memory. */
		CHECK_EQ((uintptr_t)event.body % 64, 0);
	}
	team_close(&team);
}

/* A checksum behind the header arrives with it, not with the body. */
static void the_trailer_stays_with_the_header(void)
{
	const uint32_t head_bytes = MMC_HEADER_BYTES + MMC_CRC_BYTES;
	struct mmc_team_options options = team_options(2);
	struct mmc_parcel parcel = {
		.head = pattern + 100,
		.head_bytes = head_bytes,
		.body = pattern,
		.body_bytes = 500,
		.peer = MMC_PEER_ALL,
	};
	struct mmc_event event;
	struct team team;

	options.checksum = MMC_CHECKSUM_FULL;
	options.chunk_bytes -= MMC_CRC_BYTES;
	team_open(&team, &options);
	team_connect(&team);
	CHECK_EQ(team.endpoints[0]->driver->send(team.endpoints[0], &parcel, 1),
		 0);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.nbytes, head_bytes + 500);
	CHECK_BYTES(event.bytes, pattern + 100, head_bytes);
	CHECK_BYTES(event.body, pattern, 500);
	team_close(&team);
}

/* A short length is reported as it is; the engine drops such a datagram. */
static void a_datagram_shorter_than_its_header_has_its_length(void)
{
	struct mmc_parcel parcel = {
		.head = pattern,
		.head_bytes = 5,
		.peer = MMC_PEER_ALL,
	};
	struct mmc_event event;
	struct team team;

	team_start(&team, 2);
	CHECK_EQ(team.endpoints[0]->driver->send(team.endpoints[0], &parcel, 1),
		 0);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.nbytes, 5);
	CHECK_BYTES(event.bytes, pattern, 5);
	CHECK_EQ(event.source, 0);
	team_close(&team);
}

static void what_exceeds_the_mtu_is_refused(void)
{
	struct mmc_parcel parcel = {
		.head = pattern,
		.head_bytes = MMC_HEADER_BYTES + 1,
		.body = pattern,
		.body_bytes = CHUNK_BYTES,
		.peer = MMC_PEER_ALL,
	};
	struct team team;

	team_start(&team, 2);
	CHECK_EQ(team.endpoints[0]->driver->send(team.endpoints[0], &parcel, 1),
		 -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "MTU") != NULL);
	team_close(&team);
}

/* ---- the ring ------------------------------------------------------------ */

enum { RECEIVES = 32, MANY_RECEIVES = 8 * RECEIVES };

/*
 * Opens three ranks. Ranks 0 and 1 have few receives posted, rank 2 has more than any test
 * sends at once.
 */
static void start_with_small_rings(struct team *team)
{
	struct mmc_team_options options = team_options(3);

	options.receives = RECEIVES;
	team_open(team, &options);
	CHECK_EQ(team->buffer_bytes, (RECEIVES - RECEIVES / 8) * CHUNK_BYTES);
	team->endpoints[2]->driver->close(team->endpoints[2]);
	options.receives = MANY_RECEIVES;
	team->endpoints[2] = open_rank(options, 2, 2, &team->buffer_bytes);
	CHECK_EQ(team->buffer_bytes,
		 (MANY_RECEIVES - MANY_RECEIVES / 8) * CHUNK_BYTES);
	team->endpoints[2]->driver->address(team->endpoints[2],
					    address_of(team, 2));
	team_connect(team);
}

/*
 * Receives at most `most` datagrams, until nothing more arrives, from a ring that has
 * `posted` receives; returns how many. Those for which receives are posted arrive in order
 * and without a gap. A poll posts slots again, so a device that has not yet dropped the
 * rest may fill them, but never in the poll that hands them out.
 */
static uint32_t count_all(struct mmc_endpoint *endpoint, uint32_t most,
			  uint32_t posted)
{
	uint32_t nsure = mmc_min_u32(most, posted);
	struct mmc_event events[2 * RECEIVES];
	uint32_t nreceived = 0;
	uint32_t next = 0; /* the least index that may arrive */

	while (nreceived < most) {
		int count = receive(endpoint, events, 2 * RECEIVES,
				    nreceived < nsure ? PATIENCE_MS : QUIET_MS);

		CHECK(count <= (int)posted);
		if (count == 0)
			break;
		for (int i = 0; i < count; i++, nreceived++) {
			uint32_t index = index_of(&events[i]);

			if (nreceived < nsure)
				CHECK_EQ(index, nreceived);
			else
				CHECK(index >= next);
			CHECK_BYTES(body_of(&events[i]), pattern, 64);
			next = index + 1;
		}
	}
	return nreceived;
}

/*
 * Sends `count` datagrams from rank 0 at once. Rank 1 polls only once rank 2
 * has them all. Returns how many rank 1 gets.
 */
static uint32_t send_and_count(struct team *team, uint32_t count)
{
	uint32_t nreceived;

	for (uint32_t i = 0; i < count; i++)
		send_to(team->endpoints[0], MMC_PEER_ALL, 0, false, i, 64);
	CHECK_EQ(count_all(team->endpoints[2], count, MANY_RECEIVES), count);
	nreceived = count_all(team->endpoints[1], count, RECEIVES);
	/*
	 * The next poll posts slots again, also those of the sender's own
	 * copies.
	 */
	for (uint32_t rank = 0; rank < 3; rank++)
		CHECK(is_quiet(team->endpoints[rank]));
	return nreceived;
}

static void as_many_arrive_as_are_posted(void)
{
	static const uint32_t counts[] = { RECEIVES - 1, RECEIVES, RECEIVES + 1,
					   5 * RECEIVES, RECEIVES };
	struct team team;

	start_with_small_rings(&team);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		CHECK(send_and_count(&team, counts[i]) >=
		      mmc_min_u32(counts[i], RECEIVES));
	team_close(&team);
}

/* The ring goes round many times, in batches, if the receiver keeps up. */
static void the_ring_goes_round(void)
{
	enum { BATCH = 24, BATCHES = 20 };
	struct team team;

	start_with_small_rings(&team);
	for (uint32_t i = 0; i < BATCHES; i++)
		if (!CHECK_EQ(send_and_count(&team, BATCH), BATCH))
			break;
	team_close(&team);
}

static void many_parcels_in_one_call_arrive_in_order(void)
{
	enum { COUNT = 200 };
	static uint8_t heads[COUNT][MMC_HEADER_BYTES];
	static struct mmc_parcel parcels[COUNT];
	struct mmc_event events[64];
	uint32_t next[2] = { 0, 1 };
	uint32_t ncame = 0;
	struct mmc_team_options options = team_options(2);
	struct team team;
	int nevents;

	options.subgroups = 2;
	team_open(&team, &options);
	team_connect(&team);
	for (uint32_t i = 0; i < COUNT; i++) {
		const struct mmc_header header = { .index = i };

		mmc_header_encode(heads[i], &header,
				  MMC_HEADER_BYTES + CHUNK_BYTES,
				  MMC_CHECKSUM_OFF);
		parcels[i] = (struct mmc_parcel){
			.head = heads[i],
			.head_bytes = MMC_HEADER_BYTES,
			.body = pattern,
			.body_bytes = CHUNK_BYTES,
			.peer = MMC_PEER_ALL,
			.subgroup = i % 2,
		};
	}
	CHECK_EQ(team.endpoints[1]->driver->send(team.endpoints[1], parcels,
						 COUNT),
		 0);
	while (ncame < COUNT && (nevents = receive(team.endpoints[0], events,
						   64, PATIENCE_MS)) > 0) {
		for (int i = 0; i < nevents; i++) {
			uint32_t index = index_of(&events[i]);

			CHECK_EQ(index, next[index % 2]);
			next[index % 2] = index + 2;
			CHECK_BYTES(events[i].body, pattern, CHUNK_BYTES);
		}
		ncame += (uint32_t)nevents;
	}
	CHECK_EQ(ncame, COUNT);
	team_close(&team);
}

/* ---- strangers ----------------------------------------------------------- */

/* Joins the team's group from `device` with a key, and sends to it. */
static void send_foreign(const struct team *team, uint32_t device,
			 uint32_t qkey)
{
	struct mmc_team_options options = team->options;
	uint8_t address[MMC_ADDRESS_BYTES_MAX];
	struct mmc_endpoint *stranger;
	uint32_t buffer_bytes;

	options.nranks = 1;
	options.qkey = qkey;
	stranger = open_rank(options, 0, device, &buffer_bytes);
	stranger->driver->address(stranger, address);
	succeed(stranger->driver->connect(stranger, address));
	send_to(stranger, MMC_PEER_ALL, 0, false, 3, 20);
	CHECK(is_quiet(stranger));
	stranger->driver->close(stranger);
}

static void strangers_are_told_apart(void)
{
	/* From another port; and from a port of the team, but another queue. */
	static const uint32_t devices[] = { 5, 0 };
	struct team team;

	team_start(&team, 2);
	for (int i = 0; i < 2; i++) {
		struct mmc_event event;

		send_foreign(&team, devices[i], team.options.qkey);
		event = receive_one(team.endpoints[1]);
		CHECK_EQ(event.source, MMC_PEER_UNKNOWN);
		CHECK_EQ(event.nbytes, MMC_HEADER_BYTES + 20);
	}
	team_close(&team);
}

static void a_wrong_key_is_not_heard(void)
{
	struct team team;

	team_start(&team, 2);
	send_foreign(&team, 5, team.options.qkey + 1);
	CHECK(is_quiet(team.endpoints[0]));
	CHECK(is_quiet(team.endpoints[1]));
	team_close(&team);
}

static void other_groups_are_not_heard(void)
{
	struct team team, other;

	team_start(&team, 2);
	team_start(&other, 2);
	send_to(other.endpoints[0], MMC_PEER_ALL, 0, false, 1, 10);
	receive_one(other.endpoints[1]);
	CHECK(is_quiet(team.endpoints[0]));
	CHECK(is_quiet(team.endpoints[1]));
	team_close(&other);
	team_close(&team);
}

CHECK_MAIN(CHECK_TEST(joined_through_the_connection_manager),
	   CHECK_TEST(joined_by_sockets), CHECK_TEST(joined_either_way),
	   CHECK_TEST(bodies_of_all_sizes_lie_apart),
	   CHECK_TEST(the_trailer_stays_with_the_header),
	   CHECK_TEST(a_datagram_shorter_than_its_header_has_its_length),
	   CHECK_TEST(what_exceeds_the_mtu_is_refused),
	   CHECK_TEST(as_many_arrive_as_are_posted),
	   CHECK_TEST(the_ring_goes_round),
	   CHECK_TEST(many_parcels_in_one_call_arrive_in_order),
	   CHECK_TEST(strangers_are_told_apart),
	   CHECK_TEST(a_wrong_key_is_not_heard),
	   CHECK_TEST(other_groups_are_not_heard))
