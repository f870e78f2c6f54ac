/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections and memberships that end and are made anew. What Soft-RoCE reports itself
 * is real here: a port that goes down and comes back, and a queue pair that was reset.
 * What a subnet manager causes comes from stand-ins for the functions that fetch
 * events.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs_team.h"

#define TIMEOUT_NS (8 * MMC_S_NS)

static struct team start(uint32_t nranks, enum mmc_join join)
{
	struct mmc_team_options options = team_options(nranks);
	struct team team;

	options.timeout_ns = TIMEOUT_NS;
	options.join = join;
	options.subgroups = 2;
	team_open(&team, &options);
	team_connect(&team);
	return team;
}

static struct mmc_verbs_connection *connection_to(const struct team *team,
						  uint32_t rank, uint32_t peer)
{
	return mmc_verbs_of(team->endpoints[rank])->ranks[peer].connection;
}

/* ---- moving all on ------------------------------------------------------- */

struct tally {
	uint32_t ndatagrams;
	uint32_t nfailed_reads;
	uint32_t nreads;
	uint32_t nbroken;
	uint32_t last; /* index of the last datagram */
};

/* Polls all ranks once; adds what rank 0 gets to `tally`. */
static void move(const struct team *team, struct tally *tally)
{
	struct mmc_event events[8];

	usleep(200); /* the guest's only processor sends, too */
	for (uint32_t rank = 0; rank < team->nranks; rank++) {
		struct mmc_endpoint *endpoint = team->endpoints[rank];
		int count;

		if (endpoint == NULL)
			continue;
		mmc_verbs_watch_device(mmc_verbs_of(endpoint));
		count = endpoint->driver->poll(endpoint, events, 8);
		for (int i = 0; i < count && rank == 0; i++) {
			bool data = events[i].kind == MMC_EVENT_DATAGRAM;
			bool read = events[i].kind == MMC_EVENT_READ;

			tally->ndatagrams += data;
			if (data)
				tally->last = index_of(&events[i]);
			tally->nreads += read && events[i].nbytes > 0;
			tally->nfailed_reads += read && events[i].nbytes == 0;
			tally->nbroken += events[i].kind == MMC_EVENT_BROKEN;
		}
	}
}

static uint64_t patience_ns(void)
{
	return mmc_verbs_clock_ns() + (uint64_t)PATIENCE_MS * MMC_MS_NS;
}

/* Polls until both ends of the connection are in state `link`; false if not in time. */
static bool await_links(const struct team *team, struct tally *tally,
			enum mmc_verbs_link link)
{
	uint64_t until_ns = patience_ns();

	while (connection_to(team, 0, 1)->link != link ||
	       connection_to(team, 1, 0)->link != link) {
		if (mmc_verbs_clock_ns() > until_ns)
			return false;
		move(team, tally);
	}
	return true;
}

/* Whether rank 0 gets a datagram with `index` in time. */
static bool await_datagram(const struct team *team, struct tally *tally,
			   uint32_t index)
{
	uint64_t until_ns = patience_ns();

	while (tally->last != index && mmc_verbs_clock_ns() < until_ns)
		move(team, tally);
	return tally->last == index;
}

/* Polls until `rank` has rejoined groups `count` times in all; false: not in time. */
static bool await_rejoins(const struct team *team, struct tally *tally,
			  uint32_t rank, uint64_t count)
{
	uint64_t until_ns = patience_ns();

	while (team->endpoints[rank]->rejoins < count &&
	       mmc_verbs_clock_ns() < until_ns)
		move(team, tally);
	return team->endpoints[rank]->rejoins >= count;
}

/* Checks that multicast of rank 1 to both groups, and its unicast, reach rank 0. */
static void check_all_ways(const struct team *team, struct tally *tally)
{
	static uint32_t index = 1000;

	for (uint32_t subgroup = 0; subgroup < 2; subgroup++) {
		send_to(team->endpoints[1], MMC_PEER_ALL, subgroup, false,
			++index, 30);
		CHECK(await_datagram(team, tally, index));
	}
	send_to(team->endpoints[1], 0, 0, true, ++index, 30);
	CHECK(await_datagram(team, tally, index));
	send_to(team->endpoints[1], 0, 0, false, ++index, 30);
	CHECK(await_datagram(team, tally, index));
}

static void reset_end(const struct team *team, uint32_t rank, uint32_t peer)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_RESET };

	CHECK_EQ(mmc_ibv.modify_qp(connection_to(team, rank, peer)->qp,
				   &attributes, IBV_QP_STATE),
		 0);
}

/* ---- connections --------------------------------------------------------- */

static void a_connection_comes_up_again(void)
{
	struct team team = start(2, MMC_JOIN_AUTO);
	struct tally tally = { 0 };

	for (uint64_t round = 1; round <= 3; round++) {
		reset_end(&team, round % 2, 1 - round % 2);
		/* The message is lost, but the sender's adapter finds out. */
		send_to(team.endpoints[1 - round % 2], (uint32_t)(round % 2), 0,
			true, 1, 20);
		while (connection_to(&team, 0, 1)->epoch < round)
			move(&team, &tally);
		CHECK(await_links(&team, &tally, MMC_VERBS_LINK_UP));
		CHECK_EQ(connection_to(&team, 0, 1)->epoch, round);
		CHECK_EQ(connection_to(&team, 1, 0)->epoch, round);
		CHECK_EQ(team.endpoints[0]->reconnects, round);
		CHECK_EQ(team.endpoints[1]->reconnects, round);
		check_all_ways(&team, &tally);
	}
	CHECK_EQ(tally.nbroken, 0);
	team_close(&team);
}

/* While a connection is down, control goes beside it. */
static void meanwhile_control_is_datagrams(void)
{
	struct team team = start(2, MMC_JOIN_AUTO);
	struct tally tally = { 0 };
	struct mmc_verbs *verbs = mmc_verbs_of(team.endpoints[1]);

	mmc_verbs_reads_break(&verbs->reads, &verbs->connections,
			      connection_to(&team, 1, 0), IBV_WC_RETRY_EXC_ERR);
	CHECK_EQ(connection_to(&team, 1, 0)->link, MMC_VERBS_LINK_DOWN);
	CHECK(verbs->endpoint.driver->deadline_ns(&verbs->endpoint) <=
	      mmc_verbs_clock_ns());
	send_to(team.endpoints[1], 0, 0, true, 77, 20);
	CHECK(await_datagram(&team, &tally, 77));
	CHECK(await_links(&team, &tally, MMC_VERBS_LINK_UP));
	CHECK_EQ(verbs->endpoint.driver->deadline_ns(&verbs->endpoint),
		 MMC_NEVER_NS);
	team_close(&team);
}

static void reads_fail_and_work_again(void)
{
	static uint8_t memory[64];
	struct team team = start(2, MMC_JOIN_AUTO);
	struct mmc_endpoint *reader = team.endpoints[0];
	struct tally tally = { 0 };
	struct mmc_region region;
	struct mmc_piece piece;

	succeed(team.endpoints[1]->driver->register_memory(
		team.endpoints[1], memory, sizeof(memory), &region));
	piece = (struct mmc_piece){ region.address, region.key, 64 };
	/* There are more rounds than places for reads. */
	for (uint32_t i = 1; i <= MMC_VERBS_NREADS + 2; i++) {
		reset_end(&team, 1, 0);
		CHECK_EQ(reader->driver->read(reader, 1, &piece, 1, i), 0);
		while (tally.nfailed_reads < i)
			move(&team, &tally);
		CHECK(await_links(&team, &tally, MMC_VERBS_LINK_UP));
		while (!connection_to(&team, 0, 1)->proven)
			move(&team, &tally);
	}
	CHECK_EQ(tally.nreads, 0);
	CHECK_EQ(reader->driver->read(reader, 1, &piece, 1, 99), 0);
	while (tally.nreads == 0 && CHECK_EQ(tally.nbroken, 0))
		move(&team, &tally);
	team.endpoints[1]->driver->deregister_memory(team.endpoints[1],
						     &region);
	team_close(&team);
}

static __typeof__(mmc_ibv.modify_qp) real_modify;
static uint32_t nrefusals;

static int refuse_some(struct ibv_qp *qp, struct ibv_qp_attr *attributes,
		       int mask)
{
	if ((mask & IBV_QP_DEST_QPN) && nrefusals > 0) {
		nrefusals--;
		return EHOSTUNREACH;
	}
	return real_modify(qp, attributes, mask);
}

/* A connection to a peer that cannot be reached at first is tried again. */
static void what_is_refused_is_tried_again(void)
{
	struct team team = start(2, MMC_JOIN_AUTO);
	struct tally tally = { 0 };

	real_modify = mmc_ibv.modify_qp;
	mmc_ibv.modify_qp = refuse_some;
	nrefusals = 3;
	reset_end(&team, 1, 0);
	send_to(team.endpoints[0], 1, 0, true, 1, 20);
	while (nrefusals > 0)
		move(&team, &tally);
	CHECK(await_links(&team, &tally, MMC_VERBS_LINK_UP));
	while (!connection_to(&team, 0, 1)->proven ||
	       !connection_to(&team, 1, 0)->proven)
		move(&team, &tally);
	mmc_ibv.modify_qp = real_modify;
	CHECK_EQ(connection_to(&team, 0, 1)->epoch,
		 connection_to(&team, 1, 0)->epoch);
	check_all_ways(&team, &tally);
	CHECK_EQ(tally.nbroken, 0);
	team_close(&team);
}

/* A rank that is gone is reported once the patience has run out. */
static void patience_ends(void)
{
	struct team team = start(2, MMC_JOIN_AUTO);
	struct tally tally = { 0 };
	struct mmc_verbs_connection *connection = connection_to(&team, 0, 1);

	team.endpoints[1]->driver->close(team.endpoints[1]);
	team.endpoints[1] = NULL;
	send_to(team.endpoints[0], 1, 0, true, 1, 20);
	while (tally.nbroken == 0)
		move(&team, &tally);
	CHECK_EQ(connection->link, MMC_VERBS_LINK_TOLD);
	CHECK(mmc_verbs_clock_ns() - connection->down_ns >=
	      mmc_verbs_patience_ns(TIMEOUT_NS));
	CHECK(strstr(mmc_last_error(), "retry") != NULL);
	CHECK_EQ(team.endpoints[0]->driver->deadline_ns(team.endpoints[0]),
		 MMC_NEVER_NS);
	team_close(&team);
}

/* An offer with a wrong key or LID, or of an old epoch, changes nothing. */
static void forged_offers_are_only_datagrams(void)
{
	struct team team = start(3, MMC_JOIN_AUTO);
	struct mmc_verbs_connection *connection = connection_to(&team, 0, 1);
	const struct mmc_verbs_offer right = {
		.keys = { connection->keys[1], connection->keys[0] },
		.epoch = 5,
		.psn = 1,
	};
	struct mmc_verbs_offer offers[] = { right, right, right };
	uint8_t bytes[MMC_VERBS_OFFER_BYTES];
	struct tally tally = { 0 };

	offers[0].keys[0] ^= 1;
	offers[1].keys[1] ^= 1;
	offers[2].lid = 5; /* Ethernet has no LID */
	for (uint32_t i = 0; i < 3; i++) {
		mmc_verbs_offer_encode(bytes, &offers[i]);
		mmc_verbs_tell(mmc_verbs_of(team.endpoints[1]), 0, bytes,
			       sizeof(bytes));
	}
	/* An offer that is right from one rank is nothing from another. */
	mmc_verbs_offer_encode(bytes, &right);
	mmc_verbs_tell(mmc_verbs_of(team.endpoints[2]), 0, bytes,
		       sizeof(bytes));
	while (tally.ndatagrams < 4)
		move(&team, &tally);
	CHECK_EQ(connection->epoch, 0);
	CHECK_EQ(connection->link, MMC_VERBS_LINK_UP);
	/* An offer of an epoch that has ended changes nothing either. */
	connection->epoch = 6;
	mmc_verbs_tell(mmc_verbs_of(team.endpoints[1]), 0, bytes,
		       sizeof(bytes));
	send_to(team.endpoints[1], 0, 0, false, 9, 20);
	CHECK(await_datagram(&team, &tally, 9));
	CHECK_EQ(tally.ndatagrams, 5);
	CHECK_EQ(connection->link, MMC_VERBS_LINK_UP);
	team_close(&team);
}

/* ---- the port ------------------------------------------------------------ */

static void run(const char *command)
{
	CHECK_EQ(system(command), 0);
}

/* The device itself reports that its port is down, and active again. */
static void check_port_that_flaps(enum mmc_join join)
{
	struct team team = start(2, join);
	struct tally tally = { 0 };

	run("ip link set port1 down");
	send_to(team.endpoints[0], 1, 0, true, 1, 20);
	send_to(team.endpoints[1], 0, 0, true, 1, 20);
	CHECK(await_links(&team, &tally, MMC_VERBS_LINK_DOWN));
	run("ip link set port1 up");
	CHECK(await_links(&team, &tally, MMC_VERBS_LINK_UP));
	CHECK(await_rejoins(&team, &tally, 1, 2));
	check_all_ways(&team, &tally);
	CHECK_EQ(tally.nbroken, 0);
	team_close(&team);
}

static void a_port_flaps(void)
{
	check_port_that_flaps(MMC_JOIN_CM);
}

static void a_port_flaps_under_sockets(void)
{
	check_port_that_flaps(MMC_JOIN_ATTACH);
}

/* ---- stand-ins ----------------------------------------------------------- */

static enum ibv_event_type told; /* to rank 1, once */
static int told_port;
static struct ibv_context *told_to;

static int tell_once(struct ibv_context *context, struct ibv_async_event *event)
{
	if (told_to != context) {
		errno = EAGAIN;
		return -1;
	}
	told_to = NULL;
	*event = (struct ibv_async_event){
		.event_type = told,
		.element.port_num = told_port,
	};
	return 0;
}

static void ignore(struct ibv_async_event *event)
{
	(void)event;
}

static void what_the_subnet_manager_changes_is_made_anew(void)
{
	static const enum ibv_event_type events[] = {
		IBV_EVENT_LID_CHANGE,
		IBV_EVENT_SM_CHANGE,
		IBV_EVENT_CLIENT_REREGISTER,
		IBV_EVENT_GID_CHANGE,
	};
	struct team team = start(2, MMC_JOIN_AUTO);
	struct mmc_verbs *verbs = mmc_verbs_of(team.endpoints[1]);
	__typeof__(mmc_ibv.get_async_event) get = mmc_ibv.get_async_event;
	__typeof__(mmc_ibv.ack_async_event) ack = mmc_ibv.ack_async_event;
	uint32_t gid_index = verbs->port.options.device.gid_index;
	struct tally tally = { 0 };

	mmc_ibv.get_async_event = tell_once;
	mmc_ibv.ack_async_event = ignore;
	for (uint32_t i = 0; i < 4; i++) {
		struct ibv_ah *before = verbs->group_ahs[0];

		told = events[i];
		told_port = 2; /* there is no such port */
		told_to = verbs->port.context;
		move(&team, &tally);
		CHECK_EQ(told_to == NULL, 1);
		CHECK_EQ(verbs->recover_ns, MMC_NEVER_NS);
		CHECK(verbs->ranks[0].ah != NULL);

		told_port = 1;
		told_to = verbs->port.context;
		/* As if the GID had come to its index from another one. */
		verbs->port.options.device.gid_index = 0;
		CHECK(await_rejoins(&team, &tally, 1, 2 * (i + 1)));
		CHECK_EQ(verbs->port.options.device.gid_index, gid_index);
		CHECK(verbs->ranks[0].ah == NULL);
		CHECK(verbs->group_ahs[0] != before);
		check_all_ways(&team, &tally);
		CHECK(verbs->ranks[0].ah != NULL);
	}
	CHECK_EQ(team.endpoints[0]->rejoins, 0);
	mmc_ibv.get_async_event = get;
	mmc_ibv.ack_async_event = ack;
	team_close(&team);
}

static struct rdma_event_channel *ended_on;
static struct mmc_verbs_group *ended;
static struct rdma_cm_event ending;
static __typeof__(mmc_cm.get_cm_event) real_get;
static __typeof__(mmc_cm.ack_cm_event) real_ack;

static int end_once(struct rdma_event_channel *channel,
		    struct rdma_cm_event **event)
{
	if (ended_on != channel)
		return real_get(channel, event);
	ended_on = NULL;
	ending = (struct rdma_cm_event){
		.event = RDMA_CM_EVENT_MULTICAST_ERROR,
		.status = -ENETRESET,
		.param.ud.private_data = (const uint8_t *)ended,
	};
	*event = &ending;
	return 0;
}

static int ack_real(struct rdma_cm_event *event)
{
	return event == &ending ? 0 : real_ack(event);
}

/* The kernel ends memberships on InfiniBand when a port goes down or reregisters. */
static void a_membership_that_the_kernel_ends_is_renewed(void)
{
	struct team team = start(2, MMC_JOIN_CM);
	struct mmc_verbs *verbs = mmc_verbs_of(team.endpoints[0]);
	struct tally tally = { 0 };

	real_get = mmc_cm.get_cm_event;
	real_ack = mmc_cm.ack_cm_event;
	mmc_cm.get_cm_event = end_once;
	mmc_cm.ack_cm_event = ack_real;
	ended = &verbs->groups.items[1];
	ended_on = verbs->groups.channel;
	CHECK(await_rejoins(&team, &tally, 0, 1));
	check_all_ways(&team, &tally);
	CHECK_EQ(team.endpoints[0]->rejoins, 1);
	mmc_cm.get_cm_event = real_get;
	mmc_cm.ack_cm_event = real_ack;
	team_close(&team);
}

/* The new LID of a peer is learnt from what the peer sends. */
static void a_new_lid_is_followed(void)
{
	struct team team = start(2, MMC_JOIN_AUTO);
	struct mmc_verbs *verbs = mmc_verbs_of(team.endpoints[0]);

	CHECK(verbs->ranks[1].ah != NULL);
	mmc_verbs_follow_lid(verbs, 1, 9);
	CHECK_EQ(verbs->ranks[1].lid, 0); /* Ethernet has no LID */
	verbs->own.ethernet = false;
	mmc_verbs_follow_lid(verbs, 1, 9);
	CHECK_EQ(verbs->ranks[1].lid, 9);
	CHECK(verbs->ranks[1].ah == NULL);
	CHECK(mmc_verbs_find_ah(verbs, &verbs->ranks[1]));
	mmc_verbs_follow_lid(verbs, 1, 9);
	CHECK(verbs->ranks[1].ah != NULL);
	verbs->own.ethernet = true;
	team_close(&team);
}

CHECK_MAIN(CHECK_TEST(a_connection_comes_up_again),
	   CHECK_TEST(meanwhile_control_is_datagrams),
	   CHECK_TEST(reads_fail_and_work_again),
	   CHECK_TEST(what_is_refused_is_tried_again),
	   CHECK_TEST(patience_ends),
	   CHECK_TEST(forged_offers_are_only_datagrams),
	   CHECK_TEST(a_port_flaps), CHECK_TEST(a_port_flaps_under_sockets),
	   CHECK_TEST(what_the_subnet_manager_changes_is_made_anew),
	   CHECK_TEST(a_membership_that_the_kernel_ends_is_renewed),
	   CHECK_TEST(a_new_lid_is_followed))
