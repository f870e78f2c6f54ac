/* SPDX-License-Identifier: BSD-3-Clause */
/* Subgroups: a driver serves the queues of all of them alike. */
#include "verbs_team.h"

enum { NSUBGROUPS = 4, EACH = 32 };

/* Returns whether each full batch left no group behind the others by more than half. */
static bool serves_in_turn(struct team *team)
{
	uint32_t served[NSUBGROUPS] = { 0 };
	struct mmc_event events[EACH];
	uint32_t nreceived = 0;
	bool in_turn = true;

	for (uint32_t i = 0; i < NSUBGROUPS * EACH; i++)
		send_to(team->endpoints[0], MMC_PEER_ALL, i % NSUBGROUPS, false,
			i, 20);
	for (uint32_t i = 0; i < NSUBGROUPS * EACH; i++)
		receive_one(team->endpoints[2]);
	while (nreceived < NSUBGROUPS * EACH) {
		int count =
			receive(team->endpoints[1], events, EACH, PATIENCE_MS);

		if (!CHECK(count > 0))
			return false;
		for (int i = 0; i < count; i++)
			served[index_of(&events[i]) % NSUBGROUPS]++;
		nreceived += (uint32_t)count;
		for (uint32_t i = 0; i < NSUBGROUPS && count == EACH; i++)
			in_turn &= served[i] >= nreceived / NSUBGROUPS / 2;
	}
	return in_turn;
}

/*
 * No group waits while another is served. A driver can only serve what has arrived: once
 * rank 2 has all datagrams, rank 1 has them too, unless the machine is busy. Such a round
 * says nothing, so one good round of ten is enough. A driver that empties one queue after
 * the other fails in all ten.
 */
static void groups_are_served_in_turn(void)
{
	struct mmc_team_options options = team_options(3);
	struct team team;
	bool in_turn = false;

	options.subgroups = NSUBGROUPS;
	team_open(&team, &options);
	team_connect(&team);
	for (int round = 0; round < 10 && !in_turn; round++)
		in_turn = serves_in_turn(&team);
	CHECK(in_turn);
	team_close(&team);
}

CHECK_MAIN(CHECK_TEST(groups_are_served_in_turn))
