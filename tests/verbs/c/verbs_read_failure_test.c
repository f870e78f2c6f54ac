/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads that fail: without the right to the memory, or of a rank that is gone. Teams have
 * no TIMEOUT here, which leaves no time in which to make a connection again.
 */
#include "verbs_memory.h"

/*
 * Checks that the reads under way fail, and that the connection then breaks, for a
 * reason that names the device, the queue pair and the rank.
 */
static void check_broken(struct team *team, uint32_t nreads)
{
	const struct mmc_verbs *verbs = mmc_verbs_of(team->endpoints[0]);
	struct mmc_event event;
	char text[64];

	for (uint32_t i = 0; i < nreads; i++) {
		event = receive_one(team->endpoints[0]);
		CHECK_EQ(event.kind, MMC_EVENT_READ);
		CHECK_EQ(event.nbytes, 0);
		CHECK_EQ(event.source, 1);
		CHECK_EQ(event.cookie, i);
	}
	event = receive_one(team->endpoints[0]);
	CHECK_EQ(event.kind, MMC_EVENT_BROKEN);
	CHECK_EQ(event.source, 1);
	CHECK_EQ(event.error, -MMC_EIO);
	snprintf(text, sizeof(text), "rxe0: queue pair %#x to rank 1: remote",
		 verbs->ranks[1].connection->qp->qp_num);
	if (!CHECK(strncmp(mmc_last_error(), text, strlen(text)) == 0))
		fprintf(stderr, "%s\n", mmc_last_error());
}

static void a_read_without_the_right_fails(const struct mmc_stretch *stretch,
					   struct team *team)
{
	CHECK_EQ(start_read(team, stretch, 1, 0), 0);
	CHECK_EQ(start_read(team, stretch, 1, 1), 0);
	check_broken(team, 2);
	CHECK_EQ(start_read(team, stretch, 1, 2), -MMC_ENODEV);
	CHECK(is_quiet(team->endpoints[0]));
	/* Control still passes, beside the connection. */
	send_to(team->endpoints[0], 1, 0, true, 77, 20);
	for (;;) {
		struct mmc_event event = receive_one(team->endpoints[1]);

		if (event.kind == MMC_EVENT_BROKEN) {
			CHECK_EQ(event.source, 0);
			continue;
		}
		CHECK_EQ(event.source, 0);
		CHECK_EQ(index_of(&event), 77);
		break;
	}
}

static void a_wrong_key_breaks(void)
{
	struct mmc_grant grant;
	struct mmc_stretch stretch;
	struct team team;

	team_start(&team, 2);
	grant = grant_memory(&team, MEMORY_BYTES);
	stretch = piece_of(&grant, 0, 100);
	stretch.key ^= 0x55;
	a_read_without_the_right_fails(&stretch, &team);
	revoke_memory(&team, &grant);
	team_close(&team);
}

/* A read beyond what is granted fails and breaks the connection. */
static void what_lies_outside_breaks(void)
{
	struct mmc_grant grant;
	struct mmc_stretch stretch;
	struct team team;

	team_start(&team, 2);
	grant = grant_memory(&team, 8192);
	stretch = piece_of(&grant, 8100, 200);
	a_read_without_the_right_fails(&stretch, &team);
	revoke_memory(&team, &grant);
	team_close(&team);
}

/* A read by a key that was revoked fails and breaks the connection. */
static void what_is_revoked_breaks(void)
{
	struct mmc_grant grant;
	struct mmc_stretch stretch;
	struct team team;

	team_start(&team, 2);
	grant = grant_memory(&team, MEMORY_BYTES);
	stretch = piece_of(&grant, 0, 100);
	CHECK_EQ(start_read(&team, &stretch, 1, 0), 0);
	CHECK_EQ(receive_one(team.endpoints[0]).nbytes, 100);
	revoke_memory(&team, &grant);
	a_read_without_the_right_fails(&stretch, &team);
	team_close(&team);
}

/* Keys are for reading: no rank can write memory that is granted. */
static void what_is_granted_cannot_be_written(void)
{
	struct mmc_grant grant;
	struct mmc_verbs *verbs;
	struct ibv_sge place;
	struct ibv_send_wr request = {
		.sg_list = &place,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *refused;
	uint8_t before[64];
	struct team team;

	team_start(&team, 2);
	grant = grant_memory(&team, MEMORY_BYTES);
	memcpy(before, memory, sizeof(before));
	verbs = mmc_verbs_of(team.endpoints[0]);
	memset(verbs->reads.memory.bytes, 0xee, sizeof(before));
	place = (struct ibv_sge){
		.addr = (uintptr_t)verbs->reads.memory.bytes,
		.length = sizeof(before),
		.lkey = verbs->reads.memory.region->lkey,
	};
	request.wr.rdma.remote_addr = grant.address;
	request.wr.rdma.rkey = grant.key;
	CHECK_EQ(ibv_post_send(verbs->ranks[1].connection->qp, &request,
			       &refused),
		 0);
	check_broken(&team, 0);
	CHECK_BYTES(memory, before, sizeof(before));
	revoke_memory(&team, &grant);
	team_close(&team);
}

/* A read of a rank that is gone fails, and then the connection breaks. */
static void who_is_gone_gives_no_answer(void)
{
	struct mmc_grant grant;
	struct mmc_stretch stretch;
	struct mmc_event event;
	struct team team;

	team_start(&team, 2);
	grant = grant_memory(&team, MEMORY_BYTES);
	stretch = piece_of(&grant, 0, 100);
	revoke_memory(&team, &grant);
	team.endpoints[1]->driver->close(team.endpoints[1]);
	team.endpoints[1] = NULL;
	CHECK_EQ(start_read(&team, &stretch, 1, 0), 0);
	event = receive_one(team.endpoints[0]);
	CHECK_EQ(event.kind, MMC_EVENT_READ);
	CHECK_EQ(event.nbytes, 0);
	event = receive_one(team.endpoints[0]);
	CHECK_EQ(event.kind, MMC_EVENT_BROKEN);
	CHECK_EQ(event.error, -MMC_ENOANSWER);
	team_close(&team);
}

/* Memory that does not exist cannot be registered, and the error says so. */
static void what_cannot_be_registered_says_so(void)
{
	struct mmc_region region;
	struct team team;

	team_start(&team, 2);
	CHECK(team.endpoints[0]->driver->register_memory(
		      team.endpoints[0], (void *)(uintptr_t)4096, 4096,
		      &region) < 0);
	CHECK(strstr(mmc_last_error(), "rxe0: cannot register memory") != NULL);
	team_close(&team);
}

CHECK_MAIN(CHECK_TEST(a_wrong_key_breaks), CHECK_TEST(what_lies_outside_breaks),
	   CHECK_TEST(what_is_revoked_breaks),
	   CHECK_TEST(what_is_granted_cannot_be_written),
	   CHECK_TEST(who_is_gone_gives_no_answer),
	   CHECK_TEST(what_cannot_be_registered_says_so))
