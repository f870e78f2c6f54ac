/* SPDX-License-Identifier: BSD-3-Clause */
/* A server shows a host which chunks are present, in memory of the host and no other. */
#include "server/display.h"

#include "served.h"

/*
 * The team has a second rank, which never enters: this rank's block is all that is ever
 * present. Behind the result lie the bits.
 */
enum { NRANKS = 2, CHUNKS = 7, BLOCK_BYTES = CHUNKS * 1000 - 3 };

#define BITS_AT 16384

static uint64_t *bits(void)
{
	return (uint64_t *)(void *)(region + BITS_AT);
}

static struct mmc_offload_command gather(uint32_t request)
{
	return (struct mmc_offload_command){
		.kind = MMC_OFFLOAD_START,
		.request = request,
		.operation = MMC_ALLGATHER,
		.block_bytes = BLOCK_BYTES,
		.partial = 1,
	};
}

static struct mmc_offload_command show(uint32_t request)
{
	return (struct mmc_offload_command){
		.kind = MMC_OFFLOAD_SHOW,
		.request = request,
		.nchunks = NRANKS * CHUNKS,
		.bits.offset_bytes = BITS_AT,
	};
}

/* Begins with a stream on which an operation is in flight. */
static void begin_flight(void)
{
	const struct mmc_offload_command command = gather(0);

	begin_server();
	open_all_of(NRANKS);
	put(&command);
	CHECK(mmc_server_progress(server));
	bits()[0] = 0;
}

/* The server sets the bits of present chunks at once, rings the bell, and does so once. */
static void present_chunks_are_shown(void)
{
	const struct mmc_offload_command command = show(0);

	begin_flight();
	CHECK_EQ(shared.bridge.nshown, 0);
	CHECK_EQ(bits()[0], 0);
	put(&command);
	mmc_ring_arm(&shared.bridge.completions);
	CHECK(mmc_server_progress(server));
	CHECK_EQ(bits()[0], (UINT64_C(1) << CHUNKS) - 1);
	CHECK_EQ(shared.bridge.nshown, 1);
	CHECK_EQ(nrings, 1);
	mmc_ring_arm(&shared.bridge.completions);
	mmc_server_progress(server);
	CHECK_EQ(shared.bridge.nshown, 1);
	CHECK_EQ(nrings, 1);
	CHECK(!mmc_server_is_broken(server));
	end_server();
}

/* An operation behind others is shown from when it begins. */
static void queued_operations_are_shown_later(void)
{
	struct mmc_offload_command command;

	begin_flight();
	for (uint32_t i = 1; i < 8; i++) {
		command = gather(i);
		put(&command);
	}
	command = show(7);
	put(&command);
	CHECK(mmc_server_progress(server));
	CHECK_EQ(shared.bridge.nshown, 0);
	CHECK_EQ(server->ndisplays, 1);
	CHECK(server->displays[7].present == NULL);
	CHECK(!mmc_server_is_broken(server));
	end_server();
}

/* Memory in which something is shown is kept until the operation has ended. */
static void displays_use_their_region(void)
{
	const struct mmc_offload_command command = show(0);
	const uint64_t number = 0;

	begin_flight();
	put(&command);
	CHECK(mmc_server_progress(server));
	CHECK_EQ(server->mapped[0].nused, 2);
	CHECK_EQ(call(MMC_OFFLOAD_UNREGION, 0, &number, sizeof(number)),
		 -MMC_EINVAL);
	CHECK_EQ(call(MMC_OFFLOAD_CANCEL, 0, NULL, 0), 0);
	CHECK_EQ(server->ndisplays, 0);
	CHECK_EQ(server->mapped[0].nused, 0);
	/* Whoever asks when it has ended has asked in vain. */
	put(&command);
	CHECK(mmc_server_progress(server));
	CHECK_EQ(server->ndisplays, 0);
	CHECK(!mmc_server_is_broken(server));
	CHECK_EQ(call(MMC_OFFLOAD_UNREGION, 0, &number, sizeof(number)), 0);
	end_server();
}

/* The host may write to its memory as it likes: the bits there are not believed. */
static void what_the_host_writes_is_overwritten(void)
{
	const struct mmc_offload_command command = show(0);

	begin_flight();
	put(&command);
	CHECK(mmc_server_progress(server));
	bits()[0] = UINT64_MAX;
	mmc_server_progress(server);
	CHECK_EQ(bits()[0], (UINT64_C(1) << CHUNKS) - 1);
	end_server();
}

/* Each of these commands breaks the ABI; no memory is touched. */
static void broken_commands(void)
{
	enum { NCOMMANDS = 7 };
	struct mmc_offload_command commands[NCOMMANDS];

	for (size_t i = 0; i < NCOMMANDS; i++)
		commands[i] = show(0);
	commands[0].request = MMC_OFFLOAD_REQUESTS;
	commands[1].bits.region = 1;
	commands[2].bits.region = MMC_OFFLOAD_NOWHERE;
	commands[3].bits.offset_bytes = REGION_BYTES;
	commands[4].bits.offset_bytes = BITS_AT + 4;
	commands[5].nchunks = UINT32_MAX;
	commands[6].nchunks--;
	for (size_t i = 0; i < NCOMMANDS; i++) {
		begin_flight();
		put(&commands[i]);
		CHECK(mmc_server_progress(server));
		CHECK(mmc_server_is_broken(server));
		CHECK_EQ(bits()[0], 0);
		CHECK_EQ(shared.bridge.nshown, 0);
		end_server();
	}
}

/* Nobody asks twice. */
static void a_second_display(void)
{
	const struct mmc_offload_command command = show(0);

	begin_flight();
	put(&command);
	put(&command);
	CHECK(mmc_server_progress(server));
	CHECK(mmc_server_is_broken(server));
	end_server();
}

/* Of an operation that is not `partial` nothing is shown. */
static void operations_that_are_not_partial(void)
{
	struct mmc_offload_command command = gather(0);

	begin_server();
	open_all_of(NRANKS);
	command.partial = 0;
	put(&command);
	command = show(0);
	put(&command);
	CHECK(mmc_server_progress(server));
	CHECK_EQ(shared.bridge.nshown, 0);
	CHECK(!mmc_server_is_broken(server));
	end_server();
}

CHECK_MAIN(CHECK_TEST(present_chunks_are_shown),
	   CHECK_TEST(queued_operations_are_shown_later),
	   CHECK_TEST(displays_use_their_region),
	   CHECK_TEST(what_the_host_writes_is_overwritten),
	   CHECK_TEST(broken_commands), CHECK_TEST(a_second_display),
	   CHECK_TEST(operations_that_are_not_partial))
