/* SPDX-License-Identifier: BSD-3-Clause */
/* Three endpoints of the UDP driver in one process, over loopback. */
#include "check.h"

#include <arpa/inet.h>
#include <mpimcast/mmc.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "core/codec.h"
#include "drivers/udp/peers.h"
#include "drivers/udp/udp.h"

#define NRANKS 3
#define CHUNK_BYTES 8960
#define EVENTS_MAX 64

/* How long a datagram on loopback may take on a busy machine. */
#define PATIENCE_MS 5000
/* How long one waits for what must not come. */
#define QUIET_MS 20

struct team {
	struct mmc_endpoint *endpoints[NRANKS];
	uint8_t addresses[NRANKS * MMC_ADDRESS_BYTES];
	uint32_t buffer_bytes;
};

static uint8_t payload[CHUNK_BYTES];
static uint32_t nteams;

static struct mmc_udp_options options_of(uint32_t rank, uint32_t nsubgroups)
{
	struct mmc_udp_options options = {
		.rank = rank,
		.nranks = NRANKS,
		.group = 0xefc00100 + ((uint32_t)getpid() & 0x3fff) * 4,
		.port = 20000 + ((uint32_t)getpid() + nteams) % 20000,
		.nsubgroups = nsubgroups,
		.chunk_bytes = CHUNK_BYTES,
		.checksum = MMC_CHECKSUM_HEADER,
	};

	CHECK_EQ(mmc_udp_interface("", 1, &options.interface), 0);
	return options;
}

static void open_team(struct team *team, uint32_t nsubgroups)
{
	memset(team, 0, sizeof(*team));
	nteams++;
	for (uint32_t rank = 0; rank < NRANKS; rank++) {
		struct mmc_udp_options options = options_of(rank, nsubgroups);

		if (!CHECK_EQ(mmc_udp_open(&options, &team->buffer_bytes,
					   &team->endpoints[rank]),
			      0)) {
			fprintf(stderr, "%s\n", mmc_last_error());
			exit(1);
		}
		team->endpoints[rank]->driver->address(
			team->endpoints[rank],
			team->addresses + rank * MMC_ADDRESS_BYTES);
	}
}

static void connect_team(struct team *team)
{
	for (uint32_t rank = 0; rank < NRANKS; rank++) {
		struct mmc_endpoint *endpoint = team->endpoints[rank];

		if (!CHECK_EQ(endpoint->driver->connect(endpoint,
							team->addresses),
			      0)) {
			fprintf(stderr, "%s\n", mmc_last_error());
			exit(1);
		}
	}
}

static void close_team(struct team *team)
{
	for (uint32_t rank = 0; rank < NRANKS; rank++)
		team->endpoints[rank]->driver->close(team->endpoints[rank]);
}

/* Sleeps until a descriptor is readable; false if none is in time. */
static bool wait_readable(struct mmc_endpoint *endpoint, int timeout_ms)
{
	struct pollfd watched[MMC_ENDPOINT_FDS_MAX];
	int fds[MMC_ENDPOINT_FDS_MAX];
	unsigned ncontrol = 0;
	unsigned count = endpoint->driver->fds(endpoint, fds, &ncontrol);

	CHECK_EQ(ncontrol, 1);
	for (unsigned i = 0; i < count; i++)
		watched[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	return poll(watched, count, timeout_ms) > 0;
}

/*
 * Receives datagrams until `count` are there, but no more in one call than
 * `count`. Returns how many came.
 */
static unsigned receive(struct mmc_endpoint *endpoint, struct mmc_event *events,
			unsigned count)
{
	int rv = 0;

	do {
		if (!wait_readable(endpoint, PATIENCE_MS))
			return 0;
		rv = endpoint->driver->poll(endpoint, events, count);
	} while (rv == 0);
	CHECK(rv > 0);
	return rv > 0 ? (unsigned)rv : 0;
}

/* Receives one datagram; its bytes are good until the next call. */
static struct mmc_event receive_one(struct mmc_endpoint *endpoint)
{
	struct mmc_event event = { .source = MMC_PEER_ALL };

	CHECK_EQ(receive(endpoint, &event, 1), 1);
	return event;
}

static bool is_quiet(struct mmc_endpoint *endpoint)
{
	struct mmc_event events[EVENTS_MAX];

	while (wait_readable(endpoint, QUIET_MS))
		if (endpoint->driver->poll(endpoint, events, EVENTS_MAX) != 0)
			return false;
	return true;
}

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

/* ---- devices ------------------------------------------------------------- */

static void interfaces_are_found_by_name_and_address(void)
{
	struct mmc_interface interface = { .address = 0 };

	CHECK_EQ(mmc_udp_interface("", 1, &interface), 0);
	CHECK(interface.loopback);
	CHECK_EQ(interface.address, INADDR_LOOPBACK);
	CHECK_EQ(mmc_udp_interface("nosuch0, 127.0.0.1", 0, &interface), 0);
	CHECK(strcmp(interface.name, "lo") == 0);
	CHECK_EQ(mmc_udp_interface(" lo", 0, &interface), 0);
	CHECK(interface.mtu_bytes > 1500);
	interface.mtu_bytes = 7;
	CHECK_EQ(mmc_udp_interface("nosuch0,192.0.2.1", 0, &interface),
		 -MMC_ENODEV);
	CHECK_EQ(interface.mtu_bytes, 7);
	CHECK(strstr(mmc_last_error(), "nosuch0") != NULL);
	CHECK(strstr(mmc_last_error(), "lo 127.0.0.1") != NULL);
}

static void chunks_fit_the_interface(void)
{
	static const struct {
		uint32_t mtu_bytes, chunk_bytes;
	} cases[] = {
		{ 65536, 8960 }, { 9216, 8960 }, { 9000, 8956 },
		{ 1500, 1456 },	 { 68, 24 },	 { 44, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mmc_interface interface = {
			.mtu_bytes = cases[i].mtu_bytes,
		};

		CHECK_EQ(mmc_udp_chunk_bytes(&interface), cases[i].chunk_bytes);
	}
}

/* ---- opening ------------------------------------------------------------- */

static void bad_options_are_refused(void)
{
	struct mmc_udp_options good = options_of(0, 1);
	struct mmc_udp_options bad[9];
	struct mmc_endpoint *endpoint = NULL;
	uint32_t buffer_bytes = 7;

	for (size_t i = 0; i < 9; i++)
		bad[i] = good;
	bad[0].nranks = 0;
	bad[1].rank = NRANKS;
	bad[2].nsubgroups = 0;
	bad[3].nsubgroups = MMC_UDP_SUBGROUPS_MAX + 1;
	bad[4].group = 0x7f000001;
	bad[5].port = 65536;
	bad[6].ttl = 256;
	bad[7].chunk_bytes = 0;
	bad[8].chunk_bytes = 65500;
	for (size_t i = 0; i < 9; i++)
		CHECK_EQ(mmc_udp_open(&bad[i], &buffer_bytes, &endpoint),
			 -MMC_EINVAL);
	bad[0] = good;
	bad[0].interface.address = 0xc0000201;
	CHECK_EQ(mmc_udp_open(&bad[0], &buffer_bytes, &endpoint), -MMC_EIO);
	CHECK(strstr(mmc_last_error(), "192.0.2.1") != NULL);
	CHECK(endpoint == NULL);
	CHECK_EQ(buffer_bytes, 7);
}

static void addresses_survive_encoding(void)
{
	struct mmc_udp_address address = {
		.rank = 5,
		.ip = 0x0a0b0c0d,
		.control_port = 0x1234,
		.data_port = 0xfedc,
	};
	struct mmc_udp_address read = { .rank = 0 };
	uint8_t good[MMC_ADDRESS_BYTES], bad[MMC_ADDRESS_BYTES];

	mmc_udp_address_encode(good, &address);
	CHECK_EQ(mmc_udp_address_decode(&read, good), 0);
	CHECK_EQ(read.rank, 5);
	CHECK_EQ(read.ip, 0x0a0b0c0d);
	CHECK_EQ(read.control_port, 0x1234);
	CHECK_EQ(read.data_port, 0xfedc);
	memcpy(bad, good, sizeof(bad));
	bad[0] ^= 1;
	CHECK_EQ(mmc_udp_address_decode(&read, bad), -MMC_EINVAL);
	memcpy(bad, good, sizeof(bad));
	bad[MMC_ADDRESS_BYTES - 1] = 1;
	CHECK_EQ(mmc_udp_address_decode(&read, bad), -MMC_EINVAL);
	memcpy(bad, good, sizeof(bad));
	bad[8] = 0xef;
	CHECK_EQ(mmc_udp_address_decode(&read, bad), -MMC_EINVAL);
	memcpy(bad, good, sizeof(bad));
	bad[14] = bad[15] = 0;
	CHECK_EQ(mmc_udp_address_decode(&read, bad), -MMC_EINVAL);
}

static int connect_with(const struct team *team, const uint8_t *addresses)
{
	struct mmc_endpoint *endpoint = team->endpoints[0];

	return endpoint->driver->connect(endpoint, addresses);
}

static void foreign_addresses_are_refused(void)
{
	uint8_t bad[NRANKS * MMC_ADDRESS_BYTES];
	struct mmc_udp_address address;
	struct team team;

	/* Two ranks in each other's place. */
	open_team(&team, 1);
	memcpy(bad, team.addresses, MMC_ADDRESS_BYTES);
	memcpy(bad + MMC_ADDRESS_BYTES, team.addresses + 2 * MMC_ADDRESS_BYTES,
	       MMC_ADDRESS_BYTES);
	memcpy(bad + 2 * MMC_ADDRESS_BYTES, team.addresses + MMC_ADDRESS_BYTES,
	       MMC_ADDRESS_BYTES);
	CHECK_EQ(connect_with(&team, bad), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "rank 1") != NULL);
	close_team(&team);

	/* A rank with the ports of another. */
	open_team(&team, 1);
	memcpy(bad, team.addresses, sizeof(bad));
	mmc_udp_address_decode(&address, bad);
	address.rank = 2;
	mmc_udp_address_encode(bad + 2 * MMC_ADDRESS_BYTES, &address);
	CHECK_EQ(connect_with(&team, bad), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "rank 2") != NULL);
	close_team(&team);

	/* Another one's in our own place. */
	open_team(&team, 1);
	memcpy(bad, team.addresses, sizeof(bad));
	mmc_udp_address_decode(&address, bad + MMC_ADDRESS_BYTES);
	address.rank = 0;
	mmc_udp_address_encode(bad, &address);
	CHECK_EQ(connect_with(&team, bad), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "rank 0") != NULL);
	close_team(&team);
}

/* ---- moving datagrams ---------------------------------------------------- */

static void multicast_reaches_all_others(uint32_t nsubgroups)
{
	struct team team;

	open_team(&team, nsubgroups);
	connect_team(&team);
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
	close_team(&team);
}

static void multicast_reaches_all_others_but_oneself(void)
{
	multicast_reaches_all_others(1);
	multicast_reaches_all_others(3);
	multicast_reaches_all_others(MMC_UDP_SUBGROUPS_MAX);
}

/* The kernel is to drop them: they would take room in the receive buffer. */
static void own_multicasts_do_not_wake(void)
{
	struct team team;

	open_team(&team, 2);
	connect_team(&team);
	send_to(team.endpoints[0], MMC_PEER_ALL, 0, false, 100);
	send_to(team.endpoints[0], MMC_PEER_ALL, 1, false, 100);
	receive_one(team.endpoints[1]);
	receive_one(team.endpoints[1]);
	CHECK(!wait_readable(team.endpoints[0], QUIET_MS));
	close_team(&team);
}

static void unicast_reaches_one(void)
{
	struct mmc_endpoint **endpoints;
	struct mmc_event event;
	struct team team;

	open_team(&team, 1);
	connect_team(&team);
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
	close_team(&team);
}

static void bodies_of_all_sizes_pass(void)
{
	static const uint32_t sizes[] = { 0, 1, 1456, CHUNK_BYTES };
	struct team team;

	open_team(&team, 1);
	connect_team(&team);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct mmc_event event;

		send_to(team.endpoints[2], MMC_PEER_ALL, 0, false, sizes[i]);
		event = receive_one(team.endpoints[0]);
		CHECK_EQ(event.nbytes, MMC_HEADER_BYTES + sizes[i]);
		CHECK_EQ(event.source, 2);
		CHECK_BYTES(event.bytes + MMC_HEADER_BYTES, payload, sizes[i]);
	}
	close_team(&team);
}

/* Sends from a socket that is nobody's to what `rank` takes control on. */
static void send_foreign(const struct team *team, uint32_t rank,
			 uint32_t nbytes)
{
	struct mmc_udp_address address;
	struct sockaddr_in to = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK_EQ(mmc_udp_address_decode(
			 &address, team->addresses + rank * MMC_ADDRESS_BYTES),
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

	open_team(&team, 1);
	connect_team(&team);
	send_foreign(&team, 1, 20);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.source, MMC_PEER_UNKNOWN);
	CHECK_EQ(event.nbytes, 20);
	send_foreign(&team, 1, 0);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.source, MMC_PEER_UNKNOWN);
	CHECK_EQ(event.nbytes, 0);
	close_team(&team);
}

static void overlong_datagrams_are_from_nobody(void)
{
	struct mmc_udp_options options;
	struct mmc_event event;
	uint32_t buffer_bytes;
	struct team team;

	open_team(&team, 1);
	team.endpoints[1]->driver->close(team.endpoints[1]);
	options = options_of(1, 1);
	options.chunk_bytes = 1200;
	CHECK_EQ(mmc_udp_open(&options, &buffer_bytes, &team.endpoints[1]), 0);
	team.endpoints[1]->driver->address(team.endpoints[1],
					   team.addresses + MMC_ADDRESS_BYTES);
	connect_team(&team);
	send_to(team.endpoints[0], 1, 0, false, 1200);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.source, 0);
	send_to(team.endpoints[0], 1, 0, false, 1201);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.source, MMC_PEER_UNKNOWN);
	close_team(&team);
}

/* ---- much at once -------------------------------------------------------- */

static void a_thousand_arrive_when_drained(void)
{
	enum { COUNT = 1000, BODY_BYTES = 1000 };
	static uint8_t heads[COUNT][MMC_HEADER_BYTES];
	static struct mmc_parcel parcels[COUNT];
	struct mmc_event events[EVENTS_MAX];
	struct team team;

	open_team(&team, 3);
	connect_team(&team);
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
	close_team(&team);
}

/* Two ranks send to `receiver`, one of them, by turns: it sees the other's. */
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

static void own_datagrams_leave_no_gap(void)
{
	struct team team;

	open_team(&team, 1);
	connect_team(&team);
	for (unsigned round = 0; round < 3; round++)
		send_by_turns(&team, 0);
	close_team(&team);
}

static void no_socket_starves_another(void)
{
	struct mmc_event events[EVENTS_MAX];
	bool from_group = false, from_data = false, from_control = false;
	struct team team;

	open_team(&team, 2);
	connect_team(&team);
	for (unsigned i = 0; i < 200; i++) {
		send_to(team.endpoints[0], MMC_PEER_ALL, 0, false, 1);
		send_to(team.endpoints[0], 1, 0, true, 2);
	}
	send_to(team.endpoints[0], MMC_PEER_ALL, 1, false, 3);
	send_to(team.endpoints[0], 1, 0, false, 4);
	/* Before the 400 others can have been served. */
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
	close_team(&team);
}

/* A window of the promised size is all there, though nobody reads meanwhile. */
static void a_promised_buffer_loses_nothing(void)
{
	struct mmc_event events[EVENTS_MAX];
	unsigned count, received = 0;
	struct team team;

	open_team(&team, 1);
	connect_team(&team);
	count = team.buffer_bytes / CHUNK_BYTES;
	CHECK(count > 0);
	for (unsigned i = 0; i < count; i++)
		send_to(team.endpoints[0], MMC_PEER_ALL, 0, false, CHUNK_BYTES);
	while (received < count) {
		unsigned more = receive(team.endpoints[2], events, EVENTS_MAX);

		if (!CHECK(more > 0))
			break;
		received += more;
	}
	CHECK_EQ(received, count);
	close_team(&team);
}

static void a_missing_peer_is_no_error(void)
{
	struct team team;

	open_team(&team, 1);
	connect_team(&team);
	team.endpoints[2]->driver->close(team.endpoints[2]);
	for (unsigned i = 0; i < 10; i++) {
		send_to(team.endpoints[0], 2, 0, true, 10);
		send_to(team.endpoints[0], 2, 0, false, 10);
		CHECK(is_quiet(team.endpoints[0]));
	}
	for (uint32_t rank = 0; rank < 2; rank++)
		team.endpoints[rank]->driver->close(team.endpoints[rank]);
}

/* Prepares the payload before the first test that sends. */
__attribute__((constructor)) static void fill_payload(void)
{
	for (unsigned i = 0; i < CHUNK_BYTES; i++)
		payload[i] = (uint8_t)(i * 31 + i / 256);
}

CHECK_MAIN(CHECK_TEST(interfaces_are_found_by_name_and_address),
	   CHECK_TEST(chunks_fit_the_interface),
	   CHECK_TEST(bad_options_are_refused),
	   CHECK_TEST(addresses_survive_encoding),
	   CHECK_TEST(foreign_addresses_are_refused),
	   CHECK_TEST(multicast_reaches_all_others_but_oneself),
	   CHECK_TEST(own_multicasts_do_not_wake),
	   CHECK_TEST(unicast_reaches_one),
	   CHECK_TEST(bodies_of_all_sizes_pass),
	   CHECK_TEST(strangers_are_told_apart),
	   CHECK_TEST(overlong_datagrams_are_from_nobody),
	   CHECK_TEST(a_thousand_arrive_when_drained),
	   CHECK_TEST(own_datagrams_leave_no_gap),
	   CHECK_TEST(no_socket_starves_another),
	   CHECK_TEST(a_promised_buffer_loses_nothing),
	   CHECK_TEST(a_missing_peer_is_no_error))
