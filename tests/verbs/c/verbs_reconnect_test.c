/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that break and are made anew. The cause is real here, since
 * Soft-RoCE itself reports it: a queue pair that was reset.
 */
#include "verbs_recovery.h"

static void reset_end(const struct team *team, uint32_t rank, uint32_t peer)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_RESET };

	CHECK_EQ(mmc_ibv.modify_qp(connection_to(team, rank, peer)->qp,
				   &attributes, IBV_QP_STATE),
		 0);
}

static void a_connection_comes_up_again(void)
{
	struct team team = start(2, MMC_JOIN_AUTO);
	struct tally tally = { 0 };

	for (uint64_t round = 1; round <= 3; round++) {
		reset_end(&team, round % 2, 1 - round % 2);
		/* The message is lost, but the sender's adapter finds out. */
		send_to(team.endpoints[1 - round % 2], (uint32_t)(round % 2), 0,
			true, 1, 20);
		while (connection_to(&team, 0, 1)->incarnation < round)
			move(&team, &tally);
		CHECK(await_links(&team, &tally, MMC_VERBS_LINK_UP));
		CHECK_EQ(connection_to(&team, 0, 1)->incarnation, round);
		CHECK_EQ(connection_to(&team, 1, 0)->incarnation, round);
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
	struct mmc_endpoint *granter = team.endpoints[1];
	struct tally tally = { 0 };
	struct mmc_grant grant;
	struct mmc_stretch stretch;

	succeed(granter->driver->grant_read(granter, 0, NULL, memory,
					    sizeof(memory), &grant));
	stretch = (struct mmc_stretch){ grant.address, grant.key, 64 };
	/* There are more rounds than slots for reads. */
	for (uint32_t i = 1; i <= MMC_VERBS_NREADS + 2; i++) {
		reset_end(&team, 1, 0);
		CHECK_EQ(reader->driver->read(reader, 1, &stretch, 1, i), 0);
		while (tally.nfailed_reads < i)
			move(&team, &tally);
		CHECK(await_links(&team, &tally, MMC_VERBS_LINK_UP));
		while (!connection_to(&team, 0, 1)->proven)
			move(&team, &tally);
	}
	CHECK_EQ(tally.nreads, 0);
	while (!connection_to(&team, 1, 0)->proven)
		move(&team, &tally);
	/* The grant has ended with the connection. */
	granter->driver->revoke_read(granter, &grant);
	succeed(granter->driver->grant_read(granter, 0, NULL, memory,
					    sizeof(memory), &grant));
	stretch = (struct mmc_stretch){ grant.address, grant.key, 64 };
	CHECK_EQ(reader->driver->read(reader, 1, &stretch, 1, 99), 0);
	while (tally.nreads == 0 && CHECK_EQ(tally.nbroken, 0))
		move(&team, &tally);
	granter->driver->revoke_read(granter, &grant);
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
	CHECK_EQ(connection_to(&team, 0, 1)->incarnation,
		 connection_to(&team, 1, 0)->incarnation);
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

/* An offer with a wrong PSN or LID, or of an old incarnation, changes nothing. */
static void forged_offers_are_only_datagrams(void)
{
	struct team team = start(3, MMC_JOIN_AUTO);
	struct mmc_verbs_connection *connection = connection_to(&team, 0, 1);
	const struct mmc_verbs_offer right = {
		.first_psns = { connection->first_psns[1],
				connection->first_psns[0] },
		.incarnation = 5,
		.psn = 1,
	};
	struct mmc_verbs_offer offers[] = { right, right, right };
	uint8_t bytes[MMC_VERBS_OFFER_BYTES];
	struct tally tally = { 0 };

	offers[0].first_psns[0] ^= 1;
	offers[1].first_psns[1] ^= 1;
	offers[2].lid = 5; /* Ethernet has no LID */
	for (uint32_t i = 0; i < 3; i++) {
		mmc_verbs_offer_encode(bytes, &offers[i]);
		mmc_verbs_tell(mmc_verbs_of(team.endpoints[1]), 0, bytes,
			       sizeof(bytes));
	}
	/* An offer that would be right from rank 1 is wrong from rank 2. */
	mmc_verbs_offer_encode(bytes, &right);
	mmc_verbs_tell(mmc_verbs_of(team.endpoints[2]), 0, bytes,
		       sizeof(bytes));
	while (tally.ndatagrams < 4)
		move(&team, &tally);
	CHECK_EQ(connection->incarnation, 0);
	CHECK_EQ(connection->link, MMC_VERBS_LINK_UP);
	/* An offer of an incarnation that has ended changes nothing either. */
	connection->incarnation = 6;
	mmc_verbs_tell(mmc_verbs_of(team.endpoints[1]), 0, bytes,
		       sizeof(bytes));
	send_to(team.endpoints[1], 0, 0, false, 9, 20);
	CHECK(await_datagram(&team, &tally, 9));
	CHECK_EQ(tally.ndatagrams, 5);
	CHECK_EQ(connection->link, MMC_VERBS_LINK_UP);
	team_close(&team);
}

CHECK_MAIN(CHECK_TEST(a_connection_comes_up_again),
	   CHECK_TEST(meanwhile_control_is_datagrams),
	   CHECK_TEST(reads_fail_and_work_again),
	   CHECK_TEST(what_is_refused_is_tried_again),
	   CHECK_TEST(patience_ends),
	   CHECK_TEST(forged_offers_are_only_datagrams))
