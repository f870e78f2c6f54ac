/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls are answered, and those that make no sense are refused with words. */
#include "served.h"

static void unknown_calls_break_the_abi(void)
{
	static const uint32_t kinds[] = { 0, MMC_OFFLOAD_UNREGION + 1,
					  UINT32_MAX };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		begin_server();
		CHECK_EQ(call(kinds[i], 0, NULL, 0), -MMC_EINVAL);
		CHECK(strstr(shared.bridge.mailbox.text, "ABI") != NULL);
		CHECK(mmc_server_is_broken(server));
		end_server();
	}
}

/* What does not exist cannot be asked for, nor with arguments of another length. */
static void calls_without_sense_are_refused(void)
{
	uint8_t none[8] = { 0 };

	begin_server();
	for (uint32_t kind = MMC_OFFLOAD_OPEN; kind <= MMC_OFFLOAD_UNREGION;
	     kind++)
		CHECK_EQ(call(kind, MMC_OFFLOAD_STREAMS, none, 3), -MMC_EINVAL);
	open_all();
	for (uint32_t kind = MMC_OFFLOAD_OPEN; kind <= MMC_OFFLOAD_UNREGION;
	     kind++) {
		int status = call(kind, 7, none, 3);

		if (kind == MMC_OFFLOAD_COUNTERS ||
		    kind == MMC_OFFLOAD_STRANGERS)
			CHECK_EQ(status, 0);
		else
			CHECK_EQ(status, -MMC_EINVAL);
	}
	CHECK(!mmc_server_is_broken(server));
	end_server();
}

/* An argument that is longer than the mailbox is not there. */
static void arguments_beyond_the_mailbox(void)
{
	begin_server();
	open_all();
	CHECK_EQ(call(MMC_OFFLOAD_CONNECT, 0, NULL, MAILBOX_BYTES + 1),
		 -MMC_EINVAL);
	CHECK(mmc_server_is_broken(server));
	end_server();
}

static void regions(void)
{
	const uint64_t numbers[] = { MMC_OFFLOAD_REGIONS - 1, 100 };
	const uint64_t beyond[] = { MMC_OFFLOAD_REGIONS, 100 };
	const uint64_t huge[] = { 1, UINT64_MAX };

	begin_server();
	CHECK_EQ(call(MMC_OFFLOAD_REGION, 0, numbers, sizeof(numbers)), 0);
	CHECK_EQ(nmapped, 1);
	CHECK_EQ(call(MMC_OFFLOAD_REGION, 0, numbers, sizeof(numbers)),
		 -MMC_EINVAL);
	CHECK_EQ(call(MMC_OFFLOAD_REGION, 0, beyond, sizeof(beyond)),
		 -MMC_EINVAL);
	CHECK_EQ(call(MMC_OFFLOAD_REGION, 0, huge, sizeof(huge)), -MMC_ENOMEM);
	CHECK_EQ(call(MMC_OFFLOAD_UNREGION, 0, beyond, sizeof(*beyond)),
		 -MMC_EINVAL);
	CHECK_EQ(call(MMC_OFFLOAD_UNREGION, 0, numbers, sizeof(*numbers)), 0);
	CHECK_EQ(nmapped, 0);
	CHECK_EQ(call(MMC_OFFLOAD_UNREGION, 0, numbers, sizeof(*numbers)),
		 -MMC_EINVAL);
	end_server();
}

/* A region that an operation in flight writes to stays. */
static void regions_in_use(void)
{
	const struct mmc_offload_command command = {
		.kind = MMC_OFFLOAD_START,
		.operation = MMC_ALLGATHER,
		.block_bytes = 10,
	};
	const uint64_t zero = 0;

	begin_server();
	open_all();
	put(&command);
	CHECK_EQ(call(MMC_OFFLOAD_UNREGION, 0, &zero, sizeof(zero)),
		 -MMC_EINVAL);
	CHECK(strstr(shared.bridge.mailbox.text, "in flight") != NULL);
	CHECK_EQ(nmapped, 1);
	/* Closing the stream gives the operation up. */
	CHECK_EQ(call(MMC_OFFLOAD_CLOSE, 0, NULL, 0), 0);
	CHECK_EQ(call(MMC_OFFLOAD_UNREGION, 0, &zero, sizeof(zero)), 0);
	end_server();
}

/* The secret does not stay in the mailbox. */
static void secrets_are_wiped(void)
{
	uint8_t secret[MMC_SECRET_BYTES];

	memset(secret, 0x5a, sizeof(secret));
	begin_server();
	open_all();
	CHECK_EQ(call(MMC_OFFLOAD_PROTECT, 0, secret, sizeof(secret)),
		 -MMC_EINVAL);
	CHECK(strstr(shared.bridge.mailbox.text, "PROTECT=off") != NULL);
	for (uint32_t i = 0; i < sizeof(secret); i++)
		CHECK_EQ(shared.bridge.mailbox.body[i], 0);
	end_server();
}

static void failures_are_told(void)
{
	const int32_t error = -MMC_EGONE;
	struct mmc_failure failure;

	begin_server();
	open_all();
	CHECK_EQ(call(MMC_OFFLOAD_FAILURE, 0, NULL, 0), 0);
	memcpy(&failure, shared.bridge.mailbox.body, sizeof(failure));
	CHECK_EQ(failure.error, 0);
	CHECK_EQ(call(MMC_OFFLOAD_FAIL, 0, &error, sizeof(error)), 0);
	CHECK_EQ(call(MMC_OFFLOAD_FAILURE, 0, NULL, 0), 0);
	memcpy(&failure, shared.bridge.mailbox.body, sizeof(failure));
	CHECK_EQ(failure.error, -MMC_EGONE);
	end_server();
}

CHECK_MAIN(CHECK_TEST(unknown_calls_break_the_abi),
	   CHECK_TEST(calls_without_sense_are_refused),
	   CHECK_TEST(arguments_beyond_the_mailbox), CHECK_TEST(regions),
	   CHECK_TEST(regions_in_use), CHECK_TEST(secrets_are_wiped),
	   CHECK_TEST(failures_are_told))
