/* SPDX-License-Identifier: BSD-3-Clause */
/* Trains of datagrams that cross the kernel in one piece, in the UDP driver. */
#include "check.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "core/wire/header.h"
#include "drivers/udp/endpoint.h"
#include "udp_team.h"

#define COUNT_MAX 200

static uint8_t payload[CHUNK_BYTES + COUNT_MAX];

/* The destination and the body's length of each datagram to send. */
struct plan {
	uint32_t count;
	struct {
		uint32_t peer, body_bytes;
		bool control;
	} items[COUNT_MAX];
};

static void plan_add(struct plan *plan, uint32_t count, uint32_t peer,
		     uint32_t body_bytes)
{
	for (uint32_t i = 0; i < count; i++) {
		plan->items[plan->count].peer = peer;
		plan->items[plan->count].control = false;
		plan->items[plan->count++].body_bytes = body_bytes;
	}
}

/* Sends a plan in one call; each head carries its datagram's number. */
static void plan_send(const struct plan *plan, struct mmc_endpoint *endpoint)
{
	static uint8_t heads[COUNT_MAX][MMC_HEADER_BYTES];
	struct mmc_parcel parcels[COUNT_MAX];

	for (uint32_t i = 0; i < plan->count; i++) {
		mmc_put_u32(heads[i], i);
		parcels[i] = (struct mmc_parcel){
			.head = heads[i],
			.head_bytes = MMC_HEADER_BYTES,
			.body = payload + i,
			.body_bytes = plan->items[i].body_bytes,
			.peer = plan->items[i].peer,
			.control = plan->items[i].control,
		};
	}
	CHECK_EQ(endpoint->driver->send(endpoint, parcels, plan->count), 0);
}

/* Returns whether datagram `i` of a plan of rank 0 is for `rank`. */
static bool is_for(const struct plan *plan, uint32_t i, uint32_t rank)
{
	uint32_t peer = plan->items[i].peer;

	return peer == rank || (peer == MMC_PEER_ALL && rank != 0);
}

/*
 * Receives a rank's part of a plan, at most `nmax` datagrams in one call.
 * Checks that each arrives once, and in order for its destination.
 */
static void plan_receive(const struct plan *plan, const struct team *team,
			 uint32_t rank, unsigned nmax)
{
	struct mmc_event events[EVENTS_MAX];
	bool seen[COUNT_MAX] = { false };
	uint32_t nexpected = 0;
	uint32_t last[3] = { 0 }; /* by destination: group, data, control */

	for (uint32_t i = 0; i < plan->count; i++)
		nexpected += is_for(plan, i, rank);
	for (uint32_t received = 0; received < nexpected;) {
		unsigned count = receive(team->endpoints[rank], events, nmax);

		if (!CHECK(count > 0) || !CHECK(count <= nmax))
			return;
		for (unsigned k = 0; k < count; k++, received++) {
			uint32_t i = mmc_get_u32(events[k].bytes);
			unsigned way = 0;

			if (!CHECK(i < plan->count) ||
			    !CHECK(is_for(plan, i, rank)) || !CHECK(!seen[i]))
				return;
			seen[i] = true;
			CHECK_EQ(events[k].source, 0);
			CHECK_EQ(events[k].nbytes,
				 MMC_HEADER_BYTES + plan->items[i].body_bytes);
			CHECK_BYTES(events[k].bytes + MMC_HEADER_BYTES,
				    payload + i, plan->items[i].body_bytes);
			if (plan->items[i].peer != MMC_PEER_ALL)
				way = plan->items[i].control ? 2 : 1;
			CHECK(i >= last[way]);
			last[way] = i;
		}
	}
	CHECK(is_quiet(team->endpoints[rank]));
}

/* ---- what is sent as a whole --------------------------------------------- */

/* Opens a stranger's socket in the group, which receives trains in one piece. */
static int open_listener(const struct mmc_udp *udp)
{
	struct ip_mreqn request = {
		.imr_multiaddr = udp->groups[0].sin_addr,
		.imr_address.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int one = 1;

	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)),
		 0);
	CHECK_EQ(setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)), 0);
	CHECK_EQ(bind(fd, (const struct sockaddr *)&udp->groups[0],
		      sizeof(udp->groups[0])),
		 0);
	CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request,
			    sizeof(request)),
		 0);
	return fd;
}

/* Checks that the next message holds `count` equal datagrams, and a tail. */
static void expect_train(int fd, uint32_t count, uint32_t length_bytes,
			 uint32_t tail_bytes)
{
	static uint8_t bytes[MMC_UDP_TRAIN_BYTES];
	union mmc_udp_train_length length;
	struct iovec piece = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &length,
		.msg_controllen = sizeof(length),
	};
	struct pollfd watched = { .fd = fd, .events = POLLIN };
	ssize_t nbytes;

	if (!CHECK_EQ(poll(&watched, 1, PATIENCE_MS), 1))
		return;
	nbytes = recvmsg(fd, &message, 0);
	CHECK_EQ(nbytes, count * length_bytes + tail_bytes);
	CHECK_EQ(mmc_udp_train_length(&message, (uint32_t)nbytes),
		 length_bytes);
}

/*
 * A train ends at 64 KiB, after a shorter datagram, and before a longer one or another
 * destination.
 */
static void trains_are_sent_whole(void)
{
	struct plan plan = { .count = 0 };
	struct team team;
	int fd;

	team_open(&team, 1);
	team_connect(&team);
	fd = open_listener((const struct mmc_udp *)team.endpoints[0]);
	plan_add(&plan, 45, MMC_PEER_ALL, 984);
	plan_add(&plan, 1, MMC_PEER_ALL, 84);
	plan_add(&plan, 9, MMC_PEER_ALL, CHUNK_BYTES);
	plan_add(&plan, 1, MMC_PEER_ALL, 0);
	plan_add(&plan, 2, MMC_PEER_ALL, 184);
	plan_add(&plan, 1, 1, 184);
	plan_add(&plan, 1, MMC_PEER_ALL, 184);
	plan_send(&plan, team.endpoints[0]);
	expect_train(fd, 45, 1000, 100);
	expect_train(fd, 7, 8976, 0);
	expect_train(fd, 2, 8976, 16);
	expect_train(fd, 2, 200, 0);
	expect_train(fd, 1, 200, 0);
	close(fd);
	plan_receive(&plan, &team, 1, EVENTS_MAX);
	plan_receive(&plan, &team, 2, EVENTS_MAX);
	team_close(&team);
}

/* A call sends up to 64 datagrams; one that looks for some counts if there are none. */
static void calls_are_counted(void)
{
	struct plan plan = { .count = 0 };
	struct mmc_event events[EVENTS_MAX];
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	plan_add(&plan, 130, 1, 100);
	plan_send(&plan, team.endpoints[0]);
	CHECK_EQ(team.endpoints[0]->tx_calls, 3);
	CHECK_EQ(team.endpoints[2]->driver->poll(team.endpoints[2], events, 9),
		 0);
	CHECK_EQ(team.endpoints[2]->rx_calls, 1);
	team_close(&team);
}

/* Returns a plan of mixed destinations and lengths, longer than a batch. */
static struct plan mixed_plan(void)
{
	struct plan plan = { .count = 0 };

	plan_add(&plan, 1, MMC_PEER_ALL, 10);
	plan_add(&plan, 1, MMC_PEER_ALL, 20);
	plan_add(&plan, 25, MMC_PEER_ALL, 1456);
	plan_add(&plan, 1, MMC_PEER_ALL, 7);
	plan_add(&plan, 3, 1, 1456);
	plan_add(&plan, 3, 2, 1456);
	plan_add(&plan, 4, 1, 100);
	plan_add(&plan, 1, MMC_PEER_ALL, 0);
	for (uint32_t i = 0; i < 5; i++) {
		plan_add(&plan, 2, 1, 300);
		plan.items[plan.count - 1].control = true;
		plan_add(&plan, 2, MMC_PEER_ALL, 300);
	}
	plan_add(&plan, 16, MMC_PEER_ALL, CHUNK_BYTES);
	plan_add(&plan, 60, 2, 1000);
	plan_add(&plan, 1, 2, 999);
	return plan;
}

/* Trains are returned as datagrams, however few fit one call. */
static void trains_arrive_by_the_datagram(void)
{
	static const unsigned rooms[] = { 2, 3, 7, EVENTS_MAX };
	struct plan plan = mixed_plan();
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		plan_send(&plan, team.endpoints[0]);
		plan_receive(&plan, &team, 1, rooms[i]);
		plan_receive(&plan, &team, 2, rooms[i]);
	}
	team_close(&team);
}

/* If the kernel refuses trains, as without checksums, datagrams go one by one. */
static void refused_trains_go_one_by_one(void)
{
	struct plan plan = mixed_plan();
	struct mmc_udp *udp;
	struct team team;
	int one = 1;

	team_open(&team, 1);
	team_connect(&team);
	udp = (struct mmc_udp *)team.endpoints[0];
	CHECK(udp->batch.cutting);
	CHECK_EQ(setsockopt(udp->sockets[MMC_UDP_DATA].fd, SOL_SOCKET,
			    SO_NO_CHECK, &one, sizeof(one)),
		 0);
	for (unsigned round = 0; round < 2; round++) {
		plan_send(&plan, team.endpoints[0]);
		CHECK(!udp->batch.cutting);
		plan_receive(&plan, &team, 1, EVENTS_MAX);
		plan_receive(&plan, &team, 2, EVENTS_MAX);
	}
	team_close(&team);
}

/* ---- what is received as a whole ----------------------------------------- */

/* The rest of a train comes next, before newer data, with no socket readable. */
static void what_is_left_comes_next(void)
{
	struct mmc_event events[EVENTS_MAX];
	struct plan plan = { .count = 0 }, later = { .count = 0 };
	struct mmc_endpoint *receiver;
	struct team team;
	uint32_t next;

	team_open(&team, 1);
	team_connect(&team);
	receiver = team.endpoints[1];
	plan_add(&plan, 20, MMC_PEER_ALL, 1456);
	plan_send(&plan, team.endpoints[0]);
	CHECK_EQ(receive(receiver, events, 4), 4);
	CHECK_EQ(receiver->driver->deadline_ns(receiver), 0);
	plan_add(&later, 1, 1, 50);
	plan_add(&later, 1, 1, 60);
	later.items[1].control = true;
	plan_send(&later, team.endpoints[0]);
	/* Control soon overtakes the train; other datagrams wait for its end. */
	CHECK_EQ(receiver->driver->poll(receiver, events, 4), 4);
	CHECK_EQ(events[0].nbytes, MMC_HEADER_BYTES + 1456);
	CHECK_EQ(receiver->driver->poll(receiver, events, 4), 4);
	CHECK_EQ(events[0].nbytes, MMC_HEADER_BYTES + 60);
	next = mmc_get_u32(events[3].bytes) + 1;
	CHECK_EQ(next, 11);
	while (next <= 20) {
		unsigned count = receive(receiver, events, 4);

		for (unsigned i = 0; i < count; i++, next++) {
			uint32_t body_bytes = next < 20 ? 1456 : 50;

			CHECK_EQ(mmc_get_u32(events[i].bytes), next % 20);
			CHECK_EQ(events[i].nbytes,
				 MMC_HEADER_BYTES + body_bytes);
		}
		if (!CHECK(count > 0))
			break;
	}
	CHECK(is_quiet(receiver));
	CHECK_EQ(receiver->driver->deadline_ns(receiver), MMC_NEVER_NS);
	team_close(&team);
}

/* Sends `count` datagrams of one byte as a train, from a socket of no rank. */
static void send_foreign_train(const struct sockaddr_in *to, uint32_t count)
{
	struct in_addr via = { .s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int one = 1;

	CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof(via)),
		 0);
	CHECK_EQ(setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &one, sizeof(one)),
		 0);
	CHECK_EQ(sendto(fd, payload, count, 0, (const struct sockaddr *)to,
			sizeof(*to)),
		 count);
	close(fd);
}

static void foreign_trains_are_counted_by_the_datagram(void)
{
	enum { COUNT = 60 };
	struct mmc_udp *udp;
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	udp = (struct mmc_udp *)team.endpoints[1];
	send_foreign_train(&udp->groups[0], COUNT);
	send_foreign_train(&udp->data[1], COUNT);
	send_foreign_train(&udp->control[1], COUNT);
	for (unsigned i = 0; i < 3 * COUNT; i++) {
		struct mmc_event event = receive_one(team.endpoints[1]);

		CHECK_EQ(event.source, MMC_PEER_UNKNOWN);
		CHECK_EQ(event.nbytes, 1);
	}
	CHECK(is_quiet(team.endpoints[1]));
	team_close(&team);
}

/* Returns the length that the driver takes from this note on a message of `nbytes`. */
static uint32_t noted_length(int level, int type, size_t note_bytes, int length,
			     uint32_t nbytes)
{
	union mmc_udp_train_length note = { .align = { .cmsg_level = level } };
	struct msghdr message = {
		.msg_control = &note,
		.msg_controllen = sizeof(note),
	};

	note.align.cmsg_type = type;
	note.align.cmsg_len = CMSG_LEN(note_bytes);
	memcpy(CMSG_DATA(&note.align), &length, sizeof(length));
	return mmc_udp_train_length(&message, nbytes);
}

/* If the noted length makes no sense, a message counts as one datagram. */
static void senseless_lengths_are_passed_over(void)
{
	struct msghdr message = { .msg_control = NULL };

	CHECK_EQ(noted_length(IPPROTO_UDP, UDP_GRO, 4, 100, 1000), 100);
	CHECK_EQ(noted_length(IPPROTO_UDP, UDP_GRO, 4, 999, 1000), 999);
	CHECK_EQ(noted_length(IPPROTO_UDP, UDP_GRO, 4, 1000, 1000), 1000);
	CHECK_EQ(noted_length(IPPROTO_UDP, UDP_GRO, 4, 70000, 1000), 1000);
	CHECK_EQ(noted_length(IPPROTO_UDP, UDP_GRO, 4, 0, 1000), 1000);
	CHECK_EQ(noted_length(IPPROTO_UDP, UDP_GRO, 4, -1, 1000), 1000);
	CHECK_EQ(noted_length(IPPROTO_UDP, UDP_GRO, 4, 100, 0), 0);
	CHECK_EQ(noted_length(IPPROTO_UDP, UDP_GRO, 2, 100, 1000), 1000);
	CHECK_EQ(noted_length(IPPROTO_UDP, UDP_SEGMENT, 4, 100, 1000), 1000);
	CHECK_EQ(noted_length(IPPROTO_IP, UDP_GRO, 4, 100, 1000), 1000);
	CHECK_EQ(mmc_udp_train_length(&message, 1000), 1000);
}

/* Prepares the payload before the first test that sends. */
__attribute__((constructor)) static void fill_payload(void)
{
	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 31 + i / 256);
}

CHECK_MAIN(CHECK_TEST(trains_are_sent_whole), CHECK_TEST(calls_are_counted),
	   CHECK_TEST(trains_arrive_by_the_datagram),
	   CHECK_TEST(refused_trains_go_one_by_one),
	   CHECK_TEST(what_is_left_comes_next),
	   CHECK_TEST(foreign_trains_are_counted_by_the_datagram),
	   CHECK_TEST(senseless_lengths_are_passed_over))
