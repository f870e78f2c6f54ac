/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading memory that another rank has granted. */
#include "verbs_memory.h"

/* The stretches of a read arrive together, one behind the other. */
static void pieces_come_one_behind_the_other(void)
{
	struct mmc_grant grant;
	struct mmc_stretch stretches[MMC_STRETCHES_MAX];
	struct mmc_event event;
	struct team team;

	team_start(&team, 2);
	grant = grant_memory(&team, MEMORY_BYTES);
	stretches[0] = piece_of(&grant, 5, 1);
	stretches[1] = piece_of(&grant, 70000, 8);
	stretches[2] = piece_of(&grant, 1, 0);
	stretches[3] = piece_of(&grant, 300000, 30000);
	CHECK_EQ(start_read(&team, stretches, 4, UINT64_C(0x123456789abcdef0)),
		 0);
	event = receive_one(team.endpoints[0]);
	CHECK_EQ(event.kind, MMC_EVENT_READ);
	CHECK_EQ(event.source, 1);
	CHECK_EQ(event.cookie, UINT64_C(0x123456789abcdef0));
	if (CHECK_EQ(event.nbytes, 30009)) {
		CHECK_BYTES(event.body, memory + 5, 1);
		CHECK_BYTES(event.body + 1, memory + 70000, 8);
		CHECK_BYTES(event.body + 9, memory + 300000, 30000);
	}
	CHECK(is_quiet(team.endpoints[0]));
	/* The rank that is read from notices nothing. */
	CHECK(is_quiet(team.endpoints[1]));
	revoke_memory(&team, &grant);
	team_close(&team);
}

static void reads_see_what_is_there_now(void)
{
	struct mmc_grant grant;
	struct mmc_stretch stretch;
	struct team team;

	team_start(&team, 2);
	grant = grant_memory(&team, MEMORY_BYTES);
	stretch = piece_of(&grant, 4096, 8);
	for (uint64_t i = 0; i < 20; i++) {
		struct mmc_event event;

		memcpy(memory + 4096, &i, sizeof(i));
		CHECK_EQ(start_read(&team, &stretch, 1, i), 0);
		event = receive_one(team.endpoints[0]);
		CHECK_EQ(event.nbytes, sizeof(i));
		CHECK_BYTES(event.body, &i, sizeof(i));
	}
	revoke_memory(&team, &grant);
	team_close(&team);
}

/* Starts as many reads as there is room for, at most `most`; returns how many. */
static uint32_t start_many(struct team *team, const struct mmc_grant *grant,
			   uint32_t most)
{
	uint32_t max = team->endpoints[0]->read_bytes_max;
	uint32_t nstarted = 0;
	int rv = 0;

	while (nstarted < most) {
		struct mmc_stretch stretch =
			piece_of(grant, nstarted % 8 * max, max);

		rv = start_read(team, &stretch, 1, nstarted);
		if (rv != 0)
			break;
		nstarted++;
	}
	CHECK(rv == 0 || rv == -MMC_EAGAIN);
	return nstarted;
}

/* No more reads than slots are under way; others are refused for now. */
static void more_reads_than_slots_wait(void)
{
	uint32_t max, nstarted, nended = 0;
	struct mmc_grant grant;
	struct team team;

	team_start(&team, 2);
	grant = grant_memory(&team, MEMORY_BYTES);
	max = team.endpoints[0]->read_bytes_max;
	CHECK(max > 0 && 8 * max <= MEMORY_BYTES);
	for (int round = 0; round < 3; round++) {
		struct mmc_event events[64];

		nstarted = start_many(&team, &grant, 1000);
		CHECK_EQ(nstarted, MMC_VERBS_NREADS);
		nended = 0;
		while (nended < nstarted) {
			int count = receive(team.endpoints[0], events, 64,
					    PATIENCE_MS);

			if (!CHECK(count > 0))
				break;
			for (int i = 0; i < count; i++) {
				CHECK_EQ(events[i].nbytes, max);
				CHECK_BYTES(events[i].body,
					    memory + events[i].cookie % 8 * max,
					    max);
			}
			nended += (uint32_t)count;
		}
		/* This poll frees the slots of the last reads. */
		CHECK(is_quiet(team.endpoints[0]));
	}
	revoke_memory(&team, &grant);
	team_close(&team);
}

/* No more stretches are under way than the device serves at a time. */
static void many_pieces_wait_too(void)
{
	struct mmc_stretch stretches[MMC_STRETCHES_MAX];
	struct mmc_grant grant;
	uint32_t nstarted = 0;
	struct team team;

	team_start(&team, 2);
	grant = grant_memory(&team, MEMORY_BYTES);
	for (uint32_t i = 0; i < MMC_STRETCHES_MAX; i++)
		stretches[i] = piece_of(&grant, i * 100, 100);
	while (start_read(&team, stretches, MMC_STRETCHES_MAX, nstarted) == 0)
		nstarted++;
	CHECK_EQ(nstarted, MMC_VERBS_READS_MAX / MMC_STRETCHES_MAX);
	for (uint32_t i = 0; i < nstarted; i++)
		CHECK_EQ(receive_one(team.endpoints[0]).nbytes,
			 100 * MMC_STRETCHES_MAX);
	revoke_memory(&team, &grant);
	team_close(&team);
}

/* The bytes of a read stay valid until the next poll. */
static void what_was_read_stays_until_the_next_poll(void)
{
	struct mmc_grant grant;
	struct mmc_event event;
	struct mmc_stretch stretch;
	uint32_t nstarted = 0;
	struct team team;

	team_start(&team, 2);
	grant = grant_memory(&team, MEMORY_BYTES);
	stretch = piece_of(&grant, 0, 5000);
	CHECK_EQ(start_read(&team, &stretch, 1, 0), 0);
	event = receive_one(team.endpoints[0]);
	/* Reads that start meanwhile use other slots. */
	stretch = piece_of(&grant, 200000, 5000);
	while (start_read(&team, &stretch, 1, 1) == 0)
		nstarted++;
	CHECK_EQ(nstarted, MMC_VERBS_NREADS - 1);
	usleep(QUIET_MS * 1000);
	CHECK_BYTES(event.body, memory, 5000);
	for (uint32_t i = 0; i < nstarted; i++) {
		event = receive_one(team.endpoints[0]);
		CHECK_BYTES(event.body, memory + 200000, 5000);
	}
	revoke_memory(&team, &grant);
	team_close(&team);
}

static void control_passes_beside_reads(void)
{
	struct mmc_event events[64];
	struct mmc_grant grant;
	struct team team;
	uint32_t nreads = 0;
	uint32_t nmessages = 0;

	team_start(&team, 2);
	grant = grant_memory(&team, MEMORY_BYTES);
	for (uint32_t i = 0; i < 5; i++) {
		nreads += start_many(&team, &grant, 2);
		send_to(team.endpoints[0], 1, 0, true, i, 20);
		send_to(team.endpoints[1], 0, 0, true, i, 20);
	}
	while (nreads > 0 || nmessages < 5) {
		int count = receive(team.endpoints[0], events, 64, PATIENCE_MS);

		if (!CHECK(count > 0))
			break;
		for (int i = 0; i < count; i++) {
			if (events[i].kind == MMC_EVENT_READ)
				nreads--;
			else
				nmessages++;
		}
	}
	for (uint32_t i = 0; i < 5; i++) {
		struct mmc_event event = receive_one(team.endpoints[1]);

		CHECK_EQ(index_of(&event), i);
	}
	revoke_memory(&team, &grant);
	team_close(&team);
}

static void only_partners_can_be_read(void)
{
	struct mmc_stretch stretch = { .address = 4096, .key = 1, .nbytes = 8 };
	struct mmc_endpoint *endpoint;
	struct team team;

	team_start(&team, 8);
	endpoint = team.endpoints[0];
	CHECK_EQ(endpoint->driver->read(endpoint, 3, &stretch, 1, 0),
		 -MMC_ENODEV);
	team_close(&team);
}

CHECK_MAIN(CHECK_TEST(pieces_come_one_behind_the_other),
	   CHECK_TEST(reads_see_what_is_there_now),
	   CHECK_TEST(more_reads_than_slots_wait),
	   CHECK_TEST(many_pieces_wait_too),
	   CHECK_TEST(what_was_read_stays_until_the_next_poll),
	   CHECK_TEST(control_passes_beside_reads),
	   CHECK_TEST(only_partners_can_be_read))
