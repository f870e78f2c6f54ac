/* SPDX-License-Identifier: BSD-3-Clause */
/* A server carries out good commands, and nothing of a host that breaks the ABI. */
#include "server/server.h"

#include "served.h"

/* Returns the command for an Allgather of one rank into the region. */
static struct mmc_offload_command gather(void)
{
	return (struct mmc_offload_command){
		.kind = MMC_OFFLOAD_START,
		.operation = MMC_ALLGATHER,
		.block_bytes = 100,
	};
}

/* Makes progress until a completion is in the ring, and takes it out. */
static struct mmc_offload_completion await_completion(void)
{
	struct mmc_offload_ring *ring = &shared.bridge.completions;
	struct mmc_offload_completion completion;

	while (mmc_ring_count(ring) == 0) {
		mmc_server_progress(server);
		mmc_engine_step(engine);
	}
	completion =
		shared.bridge
			.completion[ring->nconsumed % MMC_OFFLOAD_REQUESTS];
	mmc_ring_consume(ring);
	return completion;
}

static void operations_end(void)
{
	struct mmc_offload_command command = gather();

	begin_server();
	open_all();
	/* More than the rings have entries: they go round. */
	for (uint32_t i = 0; i < 2 * MMC_OFFLOAD_COMMANDS; i++) {
		struct mmc_offload_completion completion;

		command.request = i % MMC_OFFLOAD_REQUESTS;
		put(&command);
		completion = await_completion();
		if (!CHECK_EQ(completion.request, command.request) ||
		    !CHECK_EQ(completion.failure.error, 0))
			break;
	}
	end_server();
}

/* Operations that have ended are freed, even if the host never learns of it. */
static void unreported_operations_are_freed(void)
{
	struct mmc_offload_command command = gather();

	begin_server();
	open_all();
	/* So many that the engine needs the first ones no longer. */
	for (command.request = 0; command.request < 40; command.request++)
		put(&command);
	mmc_server_progress(server);
	for (int i = 0; i < 100; i++)
		mmc_engine_step(engine);
	CHECK_EQ(mmc_request_wait(server->served[39].request, 0), 0);
	end_server(); /* the sanitizer looks for what was left */
}

/* An operation that cannot start ends at once with its error. */
static void impossible_operations_fail(void)
{
	struct mmc_offload_command command = gather();

	begin_server();
	open_all();
	command.operation = MMC_BCAST;
	command.root = 1;
	put(&command);
	CHECK_EQ(await_completion().failure.error, -MMC_EINVAL);
	CHECK(!mmc_server_is_broken(server));
	end_server();
}

/* The bell is rung for an armed host, and not for one that looks by itself. */
static void armed_hosts_are_rung_for(void)
{
	struct mmc_offload_command command = gather();

	begin_server();
	open_all();
	put(&command);
	await_completion();
	CHECK_EQ(nrings, 0);
	mmc_ring_arm(&shared.bridge.completions);
	put(&command);
	await_completion();
	CHECK_EQ(nrings, 1);
	CHECK(!mmc_server_arm(server));
	put(&command);
	CHECK(mmc_server_arm(server));
	await_completion();
	end_server();
}

/* Each of these commands breaks the ABI; nothing of it is carried out. */
static void broken_commands(void)
{
	struct mmc_offload_command commands[10];
	uint64_t *tables = (uint64_t *)(void *)region;

	for (size_t i = 0; i < 10; i++)
		commands[i] = gather();
	commands[0].kind = 0;
	commands[1].stream = 1;
	commands[2].stream = MMC_OFFLOAD_STREAMS;
	commands[3].request = MMC_OFFLOAD_REQUESTS;
	commands[4].recv.region = 1;
	commands[5].recv.region = MMC_OFFLOAD_NOWHERE;
	commands[6].recv.offset_bytes = REGION_BYTES - 99;
	commands[7].recv.offset_bytes = UINT64_MAX;
	commands[8].block_bytes = UINT64_MAX;
	commands[9].operation = MMC_ALLGATHERV;
	for (size_t i = 0; i < 10; i++) {
		begin_server();
		open_all();
		tables[0] = 2;
		tables[1] = UINT64_MAX;
		put(&commands[i]);
		CHECK(mmc_server_progress(server));
		CHECK(mmc_server_is_broken(server));
		/* Then it does nothing more. */
		put(&commands[i]);
		CHECK(!mmc_server_progress(server));
		CHECK_EQ(mmc_ring_count(&shared.bridge.completions), 0);
		end_server();
	}
}

/* A number that is in flight cannot be used again. */
static void numbers_in_flight(void)
{
	const struct mmc_offload_command command = gather();

	begin_server();
	open_all();
	put(&command);
	put(&command);
	mmc_server_progress(server);
	CHECK(mmc_server_is_broken(server));
	end_server();
}

/* A ring with more entries than it can hold is no ring, whatever the entries are. */
static void overfull_rings(void)
{
	begin_server();
	open_all();
	for (uint32_t i = 0; i < MMC_OFFLOAD_COMMANDS; i++)
		shared.bridge.command[i] = (struct mmc_offload_command){
			.kind = MMC_OFFLOAD_CALL,
			.call = MMC_OFFLOAD_STRANGERS,
		};
	shared.bridge.commands.nproduced += MMC_OFFLOAD_COMMANDS + 1;
	mmc_server_progress(server);
	CHECK(mmc_server_is_broken(server));
	end_server();
}

static void other_bridges_are_refused(void)
{
	begin_server();
	end_server();
	CHECK_EQ(mmc_engine_create_stepped(&engine), 0);
	CHECK_EQ(mmc_server_create(engine, &shared.bridge,
				   sizeof(shared.bridge) - 1, NULL, NULL,
				   &server),
		 -MMC_EINVAL);
	shared.bridge.version++;
	CHECK_EQ(mmc_server_create(engine, &shared.bridge, sizeof(shared), NULL,
				   NULL, &server),
		 -MMC_EINVAL);
	mmc_engine_destroy(engine);
}

CHECK_MAIN(CHECK_TEST(operations_end),
	   CHECK_TEST(unreported_operations_are_freed),
	   CHECK_TEST(impossible_operations_fail),
	   CHECK_TEST(armed_hosts_are_rung_for), CHECK_TEST(broken_commands),
	   CHECK_TEST(numbers_in_flight), CHECK_TEST(overfull_rings),
	   CHECK_TEST(other_bridges_are_refused))
