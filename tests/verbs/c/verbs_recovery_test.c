/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memberships and connections that end with the port, and are made anew. A port
 * that goes down and comes back is real here, since Soft-RoCE itself reports
 * it. Events that a subnet manager causes come from stand-ins for the functions
 * that fetch events.
 */
#include "verbs_recovery.h"

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

static enum ibv_event_type told; /* the event that rank 1 is told, once */
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

/*
 * After each event of a subnet manager, groups are joined again and the GID and
 * the addresses are found anew; another port's event has no effect.
 */
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
		/* As if the GID had moved to its index from another. */
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

CHECK_MAIN(CHECK_TEST(a_port_flaps), CHECK_TEST(a_port_flaps_under_sockets),
	   CHECK_TEST(what_the_subnet_manager_changes_is_made_anew),
	   CHECK_TEST(a_membership_that_the_kernel_ends_is_renewed),
	   CHECK_TEST(a_new_lid_is_followed))
