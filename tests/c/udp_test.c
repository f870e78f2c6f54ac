/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams among three endpoints of the UDP driver, over loopback. */
#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/wire/header.h"
#include "drivers/udp/peers.h"
#include "udp_team.h"

static uint8_t payload[CHUNK_BYTES];

static void send_to(struct mmc_endpoint *endpoint, uint32_t peer,
		    uint32_t subgroup, bool control, uint32_t body_bytes)
{
	uint8_t head[MMC_HEADER_BYTES];
	struct mmc_parcel parcel = {
		.head = head,
		.head_bytes = sizeof(head),
		.body = body_bytes > 0 ? payload : NULL,
		.body_bytes = body_bytes,
		.peer = peer,
		.subgroup = subgroup,
		.control = control,
	};

	memset(head, (int)(subgroup + 1), sizeof(head));
	CHECK_EQ(endpoint->driver->send(endpoint, &parcel, 1), 0);
}

/* ---- moving datagrams ---------------------------------------------------- */

static void multicast_reaches_all_others(uint32_t nsubgroups)
{
	struct team team;

	team_open(&team, nsubgroups);
	team_connect(&team);
	for (uint32_t sender = 0; sender < NRANKS; sender++) {
		for (uint32_t subgroup = 0; subgroup < nsubgroups; subgroup++)
			send_to(team.endpoints[sender], MMC_PEER_ALL, subgroup,
				false, 100);
		for (uint32_t rank = 0; rank < NRANKS; rank++) {
			for (uint32_t i = 0; i < nsubgroups && rank != sender;
			     i++) {
				struct mmc_event event =
					receive_one(team.endpoints[rank]);

				CHECK_EQ(event.source, sender);
				CHECK_EQ(event.nbytes, MMC_HEADER_BYTES + 100);
				CHECK_BYTES(event.bytes + MMC_HEADER_BYTES,
					    payload, 100);
			}
			CHECK(is_quiet(team.endpoints[rank]));
		}
	}
	team_close(&team);
}

static void multicast_reaches_all_others_but_oneself(void)
{
	multicast_reaches_all_others(1);
	multicast_reaches_all_others(3);
	multicast_reaches_all_others(MMC_UDP_SUBGROUPS_MAX);
}

/* The kernel drops a rank's own multicasts: they would take room in the buffer. */
static void own_multicasts_do_not_wake(void)
{
	struct team team;

	team_open(&team, 2);
	team_connect(&team);
	send_to(team.endpoints[0], MMC_PEER_ALL, 0, false, 100);
	send_to(team.endpoints[0], MMC_PEER_ALL, 1, false, 100);
	receive_one(team.endpoints[1]);
	receive_one(team.endpoints[1]);
	CHECK(!wait_readable(team.endpoints[0], QUIET_MS));
	team_close(&team);
}

static void unicast_reaches_one(void)
{
	struct mmc_endpoint **endpoints;
	struct mmc_event event;
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	endpoints = team.endpoints;
	for (int control = 0; control < 2; control++) {
		send_to(endpoints[0], 1, 0, control != 0, 10);
		event = receive_one(endpoints[1]);
		CHECK_EQ(event.source, 0);
		CHECK_EQ(event.nbytes, MMC_HEADER_BYTES + 10);
	}
	CHECK(is_quiet(endpoints[0]));
	CHECK(is_quiet(endpoints[1]));
	CHECK(is_quiet(endpoints[2]));
	team_close(&team);
}

static void bodies_of_all_sizes_pass(void)
{
	static const uint32_t sizes[] = { 0, 1, 1456, CHUNK_BYTES };
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct mmc_event event;

		send_to(team.endpoints[2], MMC_PEER_ALL, 0, false, sizes[i]);
		event = receive_one(team.endpoints[0]);
		CHECK_EQ(event.nbytes, MMC_HEADER_BYTES + sizes[i]);
		CHECK_EQ(event.source, 2);
		CHECK_BYTES(event.bytes + MMC_HEADER_BYTES, payload, sizes[i]);
	}
	team_close(&team);
}

/* Sends from a socket of no rank to the control port of `rank`. */
static void send_foreign(const struct team *team, uint32_t rank,
			 uint32_t nbytes)
{
	struct mmc_udp_address address;
	struct sockaddr_in to = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK_EQ(mmc_udp_address_decode(&address,
					team->addresses +
						rank * MMC_UDP_ADDRESS_BYTES),
		 0);
	to.sin_addr.s_addr = htonl(address.ip);
	to.sin_port = htons(address.control_port);
	CHECK_EQ(sendto(fd, payload, nbytes, 0, (struct sockaddr *)&to,
			sizeof(to)),
		 nbytes);
	close(fd);
}

static void strangers_are_told_apart(void)
{
	struct mmc_event event;
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	send_foreign(&team, 1, 20);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.source, MMC_PEER_UNKNOWN);
	CHECK_EQ(event.nbytes, 20);
	send_foreign(&team, 1, 0);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.source, MMC_PEER_UNKNOWN);
	CHECK_EQ(event.nbytes, 0);
	team_close(&team);
}

/* A datagram that is longer than a chunk counts as a stranger's. */
static void overlong_datagrams_are_from_nobody(void)
{
	struct mmc_udp_options options;
	struct mmc_event event;
	uint32_t buffer_bytes;
	struct team team;

	team_open(&team, 1);
	team.endpoints[1]->driver->close(team.endpoints[1]);
	options = team_options(1, 1);
	options.chunk_bytes = 1200;
	CHECK_EQ(mmc_udp_open(&options, &buffer_bytes, &team.endpoints[1]), 0);
	team.endpoints[1]->driver->address(
		team.endpoints[1], team.addresses + MMC_UDP_ADDRESS_BYTES);
	team_connect(&team);
	send_to(team.endpoints[0], 1, 0, false, 1200);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.source, 0);
	send_to(team.endpoints[0], 1, 0, false, 1201);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.source, MMC_PEER_UNKNOWN);
	team_close(&team);
}

/* ---- much at once -------------------------------------------------------- */

static void a_thousand_arrive_when_drained(void)
{
	enum { COUNT = 1000, BODY_BYTES = 1000 };
	static uint8_t heads[COUNT][MMC_HEADER_BYTES];
	static struct mmc_parcel parcels[COUNT];
	struct mmc_event events[EVENTS_MAX];
	struct team team;

	team_open(&team, 3);
	team_connect(&team);
	for (uint32_t i = 0; i < COUNT; i++) {
		mmc_put_u32(heads[i], i);
		parcels[i] = (struct mmc_parcel){
			.head = heads[i],
			.head_bytes = MMC_HEADER_BYTES,
			.body = payload + i,
			.body_bytes = BODY_BYTES,
			.peer = i % 5 == 0 ? 1 : MMC_PEER_ALL,
			.subgroup = i % 3,
			.control = i % 10 == 0,
		};
	}
	for (unsigned sent = 0; sent < COUNT; sent += 100)
		CHECK_EQ(team.endpoints[0]->driver->send(team.endpoints[0],
							 parcels + sent, 100),
			 0);
	for (unsigned received = 0; received < COUNT;) {
		unsigned count = receive(team.endpoints[1], events, EVENTS_MAX);

		if (!CHECK(count > 0))
			break;
		for (unsigned k = 0; k < count; k++) {
			uint32_t i = mmc_get_u32(events[k].bytes);

			if (!CHECK(i < COUNT) ||
			    !CHECK(parcels[i].head != NULL))
				continue;
			CHECK_EQ(events[k].source, 0);
			CHECK_BYTES(events[k].bytes + MMC_HEADER_BYTES,
				    payload + i, BODY_BYTES);
			parcels[i].head = NULL;
			received++;
		}
	}
	CHECK(is_quiet(team.endpoints[1]));
	team_close(&team);
}

/* Ranks 0 and 1 send by turns to one of them, which gets only the other's. */
static void send_by_turns(const struct team *team, uint32_t receiver)
{
	struct mmc_event events[EVENTS_MAX];
	bool seen[EVENTS_MAX / 2] = { false };
	unsigned count;

	for (uint32_t i = 0; i < EVENTS_MAX / 2; i++)
		for (uint32_t rank = 0; rank < 2; rank++)
			send_to(team->endpoints[rank], receiver, 0, false,
				i * 2 + rank);
	count = receive(team->endpoints[receiver], events, EVENTS_MAX);
	CHECK_EQ(count, EVENTS_MAX / 2);
	for (unsigned k = 0; k < count; k++) {
		uint32_t body_bytes = events[k].nbytes - MMC_HEADER_BYTES;

		CHECK_EQ(events[k].source, 1 - receiver);
		CHECK_EQ(body_bytes % 2, 1 - receiver);
		for (unsigned other = 0; other < k; other++)
			CHECK(events[k].bytes != events[other].bytes);
		if (CHECK(body_bytes < EVENTS_MAX))
			seen[body_bytes / 2] = true;
	}
	for (unsigned i = 0; i < EVENTS_MAX / 2; i++)
		CHECK(seen[i]);
}

/* Datagrams that a rank sends to itself are dropped without a gap. */
static void own_datagrams_leave_no_gap(void)
{
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	for (unsigned round = 0; round < 3; round++)
		send_by_turns(&team, 0);
	team_close(&team);
}

/* A few calls serve all sockets, even if two of them are flooded. */
static void no_socket_starves_another(void)
{
	struct mmc_event events[EVENTS_MAX];
	bool from_group = false, from_data = false, from_control = false;
	struct team team;

	team_open(&team, 2);
	team_connect(&team);
	for (unsigned i = 0; i < 200; i++) {
		send_to(team.endpoints[0], MMC_PEER_ALL, 0, false, 1);
		send_to(team.endpoints[0], 1, 0, true, 2);
	}
	send_to(team.endpoints[0], MMC_PEER_ALL, 1, false, 3);
	send_to(team.endpoints[0], 1, 0, false, 4);
	/* These calls end before the 400 other datagrams can have been served. */
	for (unsigned call = 0; call < 4; call++) {
		unsigned count = receive(team.endpoints[1], events, 16);

		for (unsigned k = 0; k < count; k++) {
			uint32_t body = events[k].nbytes - MMC_HEADER_BYTES;

			from_control = from_control || body == 2;
			from_group = from_group || body == 3;
			from_data = from_data || body == 4;
		}
	}
	CHECK(from_control);
	CHECK(from_group);
	CHECK(from_data);
	team_close(&team);
}

/* While what is known to be there fills a call, only every other call asks for more. */
static void what_is_known_needs_no_question(void)
{
	enum { COUNT = 130, ROOM = 16 };
	struct mmc_endpoint *receiver;
	struct mmc_event events[ROOM];
	struct team team;
	int nreceived = 0;

	team_open(&team, 1);
	team_connect(&team);
	receiver = team.endpoints[1];
	for (unsigned i = 0; i < COUNT; i++)
		send_to(team.endpoints[0], 1, 0, false, 100);
	while (nreceived < COUNT && CHECK(wait_readable(receiver, PATIENCE_MS)))
		nreceived += receiver->driver->poll(receiver, events, ROOM);
	CHECK_EQ(nreceived, COUNT);
	/* Nine calls of poll() receive, and five of them ask. */
	CHECK_EQ(receiver->rx_calls, 9 + 5);
	CHECK(is_quiet(receiver));
	team_close(&team);
}

static void a_missing_peer_is_no_error(void)
{
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	team.endpoints[2]->driver->close(team.endpoints[2]);
	for (unsigned i = 0; i < 10; i++) {
		send_to(team.endpoints[0], 2, 0, true, 10);
		send_to(team.endpoints[0], 2, 0, false, 10);
		CHECK(is_quiet(team.endpoints[0]));
	}
	for (uint32_t rank = 0; rank < 2; rank++)
		team.endpoints[rank]->driver->close(team.endpoints[rank]);
}

/* Datagrams arrive with workers as they do without. */
static void workers_change_nothing(void)
{
	team_has_workers = true;
	multicast_reaches_all_others(1);
	multicast_reaches_all_others(3);
	own_multicasts_do_not_wake();
	unicast_reaches_one();
	bodies_of_all_sizes_pass();
	strangers_are_told_apart();
	overlong_datagrams_are_from_nobody();
	a_thousand_arrive_when_drained();
	own_datagrams_leave_no_gap();
	a_missing_peer_is_no_error();
	team_has_workers = false;
}

/* Prepares the payload before the first test that sends. */
__attribute__((constructor)) static void fill_payload(void)
{
	for (unsigned i = 0; i < CHUNK_BYTES; i++)
		payload[i] = (uint8_t)(i * 31 + i / 256);
}

CHECK_MAIN(CHECK_TEST(multicast_reaches_all_others_but_oneself),
	   CHECK_TEST(own_multicasts_do_not_wake),
	   CHECK_TEST(unicast_reaches_one),
	   CHECK_TEST(bodies_of_all_sizes_pass),
	   CHECK_TEST(strangers_are_told_apart),
	   CHECK_TEST(overlong_datagrams_are_from_nobody),
	   CHECK_TEST(a_thousand_arrive_when_drained),
	   CHECK_TEST(own_datagrams_leave_no_gap),
	   CHECK_TEST(no_socket_starves_another),
	   CHECK_TEST(what_is_known_needs_no_question),
	   CHECK_TEST(a_missing_peer_is_no_error),
	   CHECK_TEST(workers_change_nothing))
