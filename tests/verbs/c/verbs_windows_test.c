/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A grant lets one rank read one part of memory until it is revoked. A read without the
 * right is refused by the granting rank's device, and costs no more than the connection,
 * which is made again.
 */
#include "verbs_memory.h"
#include "verbs_refusal.h"

static struct team start_three(void)
{
	struct team team = start(3, MMC_JOIN_AUTO);

	for (uint32_t rank = 0; rank < 3; rank++)
		CHECK(mmc_verbs_of(team.endpoints[rank])->port.has_windows);
	/* The connections are proven by what they carry. */
	for (uint32_t reader = 0; reader < 3; reader += 2) {
		send_to(team.endpoints[reader], 1, 0, true, 1, 20);
		send_to(team.endpoints[1], reader, 0, true, 1, 20);
		await_up(&team, reader);
	}
	return team;
}

/* The grant holds for the queue pair of the rank that it names, and for no other. */
static void another_queue_pair_is_refused(void)
{
	struct team team = start_three();
	struct mmc_grant grant = grant_memory(&team, MEMORY_BYTES);

	CHECK_EQ(read_as(&team, 0, piece_of(&grant, 5, 100)), 100);
	CHECK_EQ(read_as(&team, 2, piece_of(&grant, 5, 100)), 0);
	CHECK_EQ(read_as(&team, 0, piece_of(&grant, 5, 100)), 100);
	revoke_memory(&team, &grant);
	team_close(&team);
}

/* After the revocation the old key is refused; a new grant of the same memory works. */
static void an_old_key_is_refused(void)
{
	struct team team = start_three();

	for (int i = 0; i < 3; i++) {
		struct mmc_grant grant = grant_memory(&team, MEMORY_BYTES);
		struct mmc_stretch stretch = piece_of(&grant, 5, 100);

		CHECK_EQ(read_as(&team, 0, stretch), 100);
		revoke_memory(&team, &grant);
		CHECK_EQ(read_as(&team, 0, stretch), 0);
		CHECK_EQ(read_as(&team, 2, stretch), 0);
	}
	CHECK_EQ(team.endpoints[0]->reconnects, 3);
	team_close(&team);
}

/* A region's own key gives no right, whether or not a part of it is granted. */
static void a_region_alone_is_refused(void)
{
	struct team team = start_three();
	struct mmc_endpoint *granter = team.endpoints[1];
	struct mmc_stretch stretch;
	struct mmc_region region;
	struct mmc_grant grant;

	succeed(granter->driver->register_memory(granter, pattern,
						 sizeof(pattern), &region));
	stretch = (struct mmc_stretch){
		.address = (uintptr_t)pattern,
		.key = ((const struct ibv_mr *)region.handle)->rkey,
		.nbytes = 100,
	};
	CHECK_EQ(read_as(&team, 0, stretch), 0);
	succeed(granter->driver->grant_read(granter, 0, &region, pattern + 1000,
					    200, &grant));
	CHECK_EQ(read_as(&team, 0, piece_of(&grant, 0, 200)), 200);
	CHECK_EQ(read_as(&team, 0, stretch), 0);
	granter->driver->revoke_read(granter, &grant);
	granter->driver->deregister_memory(granter, &region);
	team_close(&team);
}

/* A connection that is made again leaves no right behind. */
static void rights_end_with_the_connection(void)
{
	struct team team = start_three();
	struct mmc_grant grant = grant_memory(&team, MEMORY_BYTES);
	struct mmc_verbs *reader = mmc_verbs_of(team.endpoints[0]);

	mmc_verbs_reads_break(&reader->reads, &reader->connections,
			      connection_to(&team, 0, 1), IBV_WC_RETRY_EXC_ERR);
	await_up(&team, 0);
	CHECK_EQ(read_as(&team, 0, piece_of(&grant, 5, 100)), 0);
	revoke_memory(&team, &grant);
	team_close(&team);
}

/* Without a connection that works, nothing is granted; later it is. */
static void a_grant_needs_the_connection(void)
{
	struct team team = start_three();
	struct mmc_endpoint *granter = team.endpoints[1];
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_RESET };
	struct outcome outcome = { 0 };
	struct mmc_grant grant;

	CHECK_EQ(granter->driver->grant_read(granter, 0, NULL, pattern, 0,
					     &grant),
		 -MMC_EINVAL);
	/* The peer's adapter no longer answers, so no request completes. */
	CHECK_EQ(mmc_ibv.modify_qp(connection_to(&team, 0, 1)->qp, &attributes,
				   IBV_QP_STATE),
		 0);
	send_to(granter, 0, 0, true, 1, 20);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(granter->driver->grant_read(granter, 0, NULL, pattern,
						     sizeof(pattern), &grant),
			 -MMC_EAGAIN);
	while (team.endpoints[0]->reconnects == 0)
		turn(&team, 0, &outcome);
	await_up(&team, 0);
	succeed(granter->driver->grant_read(granter, 0, NULL, pattern,
					    sizeof(pattern), &grant));
	CHECK_EQ(read_as(&team, 0, piece_of(&grant, 7, 90)), 90);
	granter->driver->revoke_read(granter, &grant);
	team_close(&team);
}

/* Without windows a grant is a registration of its own, and ends as surely. */
static void a_device_without_windows(void)
{
	struct team team = start_three();
	struct mmc_endpoint *granter = team.endpoints[1];
	struct mmc_stretch stretch;
	struct mmc_region region;
	struct mmc_grant grant;

	mmc_verbs_of(granter)->port.has_windows = false;
	succeed(granter->driver->register_memory(granter, pattern,
						 sizeof(pattern), &region));
	succeed(granter->driver->grant_read(granter, 0, &region, pattern + 10,
					    200, &grant));
	stretch = piece_of(&grant, 0, 200);
	CHECK_EQ(read_as(&team, 0, stretch), 200);
	CHECK_EQ(read_as(&team, 0, piece_of(&grant, 0, 201)), 0);
	granter->driver->revoke_read(granter, &grant);
	CHECK_EQ(read_as(&team, 0, stretch), 0);
	granter->driver->deregister_memory(granter, &region);
	team_close(&team);
}

CHECK_MAIN(CHECK_TEST(another_queue_pair_is_refused),
	   CHECK_TEST(an_old_key_is_refused),
	   CHECK_TEST(a_region_alone_is_refused),
	   CHECK_TEST(rights_end_with_the_connection),
	   CHECK_TEST(a_grant_needs_the_connection),
	   CHECK_TEST(a_device_without_windows))
