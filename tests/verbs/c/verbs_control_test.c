/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams to one rank, over connections and beside them. */
#include "verbs_team.h"

static struct mmc_verbs_connection *connection_to(const struct team *team,
						  uint32_t rank, uint32_t peer)
{
	return mmc_verbs_of(team->endpoints[rank])->ranks[peer].connection;
}

static void control_reaches_one(void)
{
	struct team team;
	uint32_t nconnected = 0;

	team_start(&team, 8);
	for (uint32_t rank = 0; rank < 8; rank++) {
		for (uint32_t peer = 0; peer < 8; peer++) {
			struct mmc_event event;
			bool connected;

			if (peer == rank)
				continue;
			connected = connection_to(&team, rank, peer) != NULL;
			nconnected += connected;
			send_to(team.endpoints[rank], peer, 0, true, rank, 60);
			event = receive_one(team.endpoints[peer]);
			CHECK_EQ(event.source, rank);
			CHECK_EQ(event.nbytes, MMC_HEADER_BYTES + 60);
			CHECK_EQ(index_of(&event), rank);
			CHECK_BYTES(body_of(&event), pattern, 60);
			/* Bodies lie apart only beside connections. */
			CHECK_EQ(event.body == NULL, connected);
		}
	}
	/* Each rank is connected to those 1, 2 and 4 away in either direction. */
	CHECK_EQ(nconnected, 8 * 5);
	for (uint32_t rank = 0; rank < 8; rank++)
		CHECK(is_quiet(team.endpoints[rank]));
	team_close(&team);
}

static void data_for_one_needs_no_connection(void)
{
	struct team team;

	team_start(&team, 3);
	for (uint32_t peer = 1; peer < 3; peer++) {
		struct mmc_event event;

		send_to(team.endpoints[0], peer, 0, false, 9, CHUNK_BYTES);
		event = receive_one(team.endpoints[peer]);
		CHECK_EQ(event.source, 0);
		CHECK_EQ(event.nbytes, MMC_HEADER_BYTES + CHUNK_BYTES);
		CHECK_BYTES(event.body, pattern, CHUNK_BYTES);
	}
	CHECK(is_quiet(team.endpoints[0]));
	team_close(&team);
}

static void control_to_all_goes_by_multicast(void)
{
	struct team team;

	team_start(&team, 3);
	send_to(team.endpoints[2], MMC_PEER_ALL, 0, true, 4, 30);
	for (uint32_t rank = 0; rank < 2; rank++)
		CHECK_EQ(receive_one(team.endpoints[rank]).source, 2);
	CHECK(is_quiet(team.endpoints[2]));
	team_close(&team);
}

static void the_longest_message_passes(void)
{
	const uint32_t body_bytes = MMC_MESSAGE_BYTES_MAX - MMC_HEADER_BYTES;
	struct mmc_event event;
	struct team team;

	team_start(&team, 2);
	send_to(team.endpoints[0], 1, 0, true, 1, body_bytes);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.nbytes, MMC_MESSAGE_BYTES_MAX);
	CHECK_BYTES(body_of(&event), pattern, body_bytes);
	team_close(&team);
}

static void messages_arrive_in_order(void)
{
	enum { COUNT = 300 };
	struct mmc_event events[8];
	uint32_t ncame = 0;
	struct team team;
	int nevents;

	team_start(&team, 2);
	for (uint32_t i = 0; i < COUNT; i++) {
		send_to(team.endpoints[1], 0, 0, true, i, 20);
		while ((nevents = receive(team.endpoints[0], events, 8,
					  PATIENCE_MS)) == 0)
			;
		for (int j = 0; j < nevents; j++)
			CHECK_EQ(index_of(&events[j]), ncame++);
		if (!CHECK(ncame == i + 1))
			break;
	}
	team_close(&team);
}

/* Sending to a stopped process is no error, and holds nobody up. */
static void who_does_not_listen_holds_nobody_up(void)
{
	enum { COUNT = 400 };
	struct mmc_event event;
	uint32_t ncame = 0;
	struct team team;
	uint64_t from_ns;

	team_start(&team, 2);
	from_ns = team.endpoints[0]->driver->now_ns(team.endpoints[0]);
	for (uint32_t i = 0; i < COUNT; i++)
		send_to(team.endpoints[0], 1, 0, true, i, 20);
	CHECK(team.endpoints[0]->driver->now_ns(team.endpoints[0]) - from_ns <
	      5 * MMC_S_NS);
	CHECK(is_quiet(team.endpoints[0]));
	while (receive(team.endpoints[1], &event, 1, 200) == 1) {
		CHECK_EQ(event.kind, MMC_EVENT_DATAGRAM);
		CHECK_EQ(event.source, 0);
		ncame++;
	}
	/* What found no room in the connection went beside it, or was lost. */
	CHECK(ncame >= 64);
	CHECK(ncame <= COUNT);
	send_to(team.endpoints[0], 1, 0, true, 5, 20);
	CHECK_EQ(index_of((event = receive_one(team.endpoints[1]), &event)), 5);
	team_close(&team);
}

/* ---- what breaks --------------------------------------------------------- */

static void check_text(const char *device, uint32_t qpn, const char *peer,
		       const char *status)
{
	char queue[32];

	snprintf(queue, sizeof(queue), "queue pair %#x", qpn);
	if (!CHECK(strstr(mmc_last_error(), device) != NULL) ||
	    !CHECK(strstr(mmc_last_error(), queue) != NULL) ||
	    !CHECK(strstr(mmc_last_error(), peer) != NULL) ||
	    !CHECK(strstr(mmc_last_error(), status) != NULL))
		fprintf(stderr, "%s\n", mmc_last_error());
}

/* A rank that is gone is reported once; others can still be reached. */
static void who_is_gone_gives_no_answer(void)
{
	struct mmc_event event;
	struct team team;
	uint32_t qpn;

	team_start(&team, 3);
	team.endpoints[1]->driver->close(team.endpoints[1]);
	team.endpoints[1] = NULL;
	qpn = connection_to(&team, 0, 1)->qp->qp_num;
	send_to(team.endpoints[0], 1, 0, true, 1, 20);
	event = receive_one(team.endpoints[0]);
	CHECK_EQ(event.kind, MMC_EVENT_BROKEN);
	CHECK_EQ(event.source, 1);
	CHECK_EQ(event.error, -MMC_ENOANSWER);
	check_text("rxe0", qpn, "rank 1", "retry");
	/* The break is reported once; later messages go beside the connection. */
	send_to(team.endpoints[0], 1, 0, true, 2, 20);
	CHECK(is_quiet(team.endpoints[0]));
	/* The other rank can still be reached. */
	send_to(team.endpoints[0], 2, 0, true, 3, 20);
	CHECK_EQ(receive_one(team.endpoints[2]).source, 0);
	send_to(team.endpoints[2], MMC_PEER_ALL, 0, false, 3, 20);
	CHECK_EQ(receive_one(team.endpoints[0]).source, 2);
	team_close(&team);
}

/* A rank of another team can send datagrams to this one, but not connect to it. */
static void strangers_are_told_apart(void)
{
	struct mmc_team_options options;
	struct team team, other;
	struct mmc_event event;
	uint32_t address_bytes;

	team_start(&team, 2);
	options = team.options;
	options.group += 64;
	team_open(&other, &options);
	address_bytes = other.endpoints[0]->address_bytes;
	memcpy(other.addresses + address_bytes, team.addresses + address_bytes,
	       address_bytes);
	succeed(other.endpoints[0]->driver->connect(other.endpoints[0],
						    other.addresses));
	send_to(other.endpoints[0], 1, 0, false, 1, 50);
	event = receive_one(team.endpoints[1]);
	CHECK_EQ(event.source, MMC_PEER_UNKNOWN);
	/* The stranger's connection has no peer: nothing arrives, and it breaks. */
	send_to(other.endpoints[0], 1, 0, true, 1, 50);
	CHECK_EQ(receive_one(other.endpoints[0]).kind, MMC_EVENT_BROKEN);
	CHECK(is_quiet(team.endpoints[1]));
	/* The team's own connection still works. */
	send_to(team.endpoints[0], 1, 0, true, 2, 50);
	CHECK_EQ(receive_one(team.endpoints[1]).source, 0);
	team_close(&other);
	team_close(&team);
}

/* A failed datagram queue is reported once, without a rank to blame. */
static void a_failed_queue_breaks_the_endpoint(void)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_ERR };
	struct mmc_event event;
	struct team team;

	team_start(&team, 2);
	CHECK_EQ(
		mmc_ibv.modify_qp(mmc_verbs_of(team.endpoints[0])->queues[0].qp,
				  &attributes, IBV_QP_STATE),
		0);
	event = receive_one(team.endpoints[0]);
	CHECK_EQ(event.kind, MMC_EVENT_BROKEN);
	CHECK_EQ(event.source, MMC_PEER_NONE);
	CHECK_EQ(event.error, -MMC_EIO);
	check_text("rxe0",
		   mmc_verbs_of(team.endpoints[0])->queues[0].qp->qp_num, "",
		   "Flush");
	CHECK(is_quiet(team.endpoints[0]));
	team_close(&team);
}

CHECK_MAIN(CHECK_TEST(control_reaches_one),
	   CHECK_TEST(data_for_one_needs_no_connection),
	   CHECK_TEST(control_to_all_goes_by_multicast),
	   CHECK_TEST(the_longest_message_passes),
	   CHECK_TEST(messages_arrive_in_order),
	   CHECK_TEST(who_does_not_listen_holds_nobody_up),
	   CHECK_TEST(who_is_gone_gives_no_answer),
	   CHECK_TEST(strangers_are_told_apart),
	   CHECK_TEST(a_failed_queue_breaks_the_endpoint))
