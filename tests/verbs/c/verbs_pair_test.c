/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs over the verbs driver: two ranks that send by unicast what a team multicasts. */
#include "verbs_team.h"

static void pair_start(struct team *pair)
{
	struct mmc_team_options options = team_options(2);

	options.pair = 1;
	team_open(pair, &options);
	team_connect(pair);
}

/* What goes to all arrives at the other rank, in order, and from a known source. */
static void what_goes_to_all_goes_to_the_other(void)
{
	struct team pair;

	pair_start(&pair);
	for (uint32_t sender = 0; sender < 2; sender++) {
		for (uint32_t i = 0; i < 8; i++)
			send_to(pair.endpoints[sender], MMC_PEER_ALL, 0,
				i % 3 == 0, i, 100);
		for (uint32_t i = 0; i < 8; i++) {
			struct mmc_event event =
				receive_one(pair.endpoints[1 - sender]);

			CHECK_EQ(event.kind, MMC_EVENT_DATAGRAM);
			CHECK_EQ(event.source, sender);
			CHECK_EQ(index_of(&event), i);
			CHECK_BYTES(body_of(&event), pattern, 100);
		}
		CHECK(is_quiet(pair.endpoints[sender]));
	}
	team_close(&pair);
}

/* A pair joins no group, so it needs no subnet manager, and multicast cannot reach it. */
static void no_group_is_joined(void)
{
	struct team pair;

	pair_start(&pair);
	for (uint32_t rank = 0; rank < 2; rank++) {
		const struct mmc_verbs *verbs =
			mmc_verbs_of(pair.endpoints[rank]);

		CHECK_EQ(verbs->groups.count, 0);
		CHECK_EQ(verbs->nattached, 0);
	}
	team_close(&pair);
}

/* A recovery makes the address handle anew by which a pair sends. */
static void recovers(void)
{
	struct team pair;

	pair_start(&pair);
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct mmc_verbs *verbs = mmc_verbs_of(pair.endpoints[rank]);
		struct mmc_event event;

		mmc_verbs_recover_soon(verbs, true);
		mmc_verbs_recover_poll(verbs);
		CHECK_EQ(mmc_verbs_recover_deadline_ns(verbs), MMC_NEVER_NS);
		CHECK(verbs->ranks[1 - rank].ah == NULL);
		send_to(pair.endpoints[rank], MMC_PEER_ALL, 0, false, 5, 10);
		event = receive_one(pair.endpoints[1 - rank]);
		CHECK_EQ(index_of(&event), 5);
	}
	team_close(&pair);
}

CHECK_MAIN(CHECK_TEST(what_goes_to_all_goes_to_the_other),
	   CHECK_TEST(no_group_is_joined), CHECK_TEST(recovers))
