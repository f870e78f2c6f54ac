/* SPDX-License-Identifier: BSD-3-Clause */
/* FAULT settings: which are accepted, which are refused, and what they wrap. */
#include "check.h"

#include <mpimcast/mmc.h>

#include "fault_memory.h"

static const struct {
	const char *text;
	const char *reason; /* part of the error text; NULL: accepted */
} cases[] = {
	{ "", NULL },
	{ "loss=0.1,dup=0.02,reorder=0.05,seed=99", NULL },
	{ "loss=1;loss=0;loss=1.000;loss=0.123456789123", NULL },
	{ "seed=18446744073709551615", NULL },
	{ "rank=0+3+17,dir=tx,kind=control", NULL },
	{ "kind=multicast+control,stall_ms=20,delay_us=5", NULL },
	{ "kind=all,corrupt=0.5", NULL },
	{ "loss=0.9,loss_period=9", NULL },
	{ "loss=1,loss_period=1", NULL },
	{ "loss_period=0", "1 to 1000000" },
	{ "loss_period=1000001", "1 to 1000000" },
	{ "loss=0.91,loss_period=9", "N / (N + 1)" },
	{ "los=0.1", "the keys are loss, loss_period, dup" },
	{ " loss=0.1", "unknown key ' loss'" },
	{ "loss", "a number from 0 to 1" },
	{ "loss=", "a number from 0 to 1" },
	{ "loss=1.1", "a number from 0 to 1" },
	{ "loss=2", "a number from 0 to 1" },
	{ "loss=.5", "a number from 0 to 1" },
	{ "loss=1.", "a number from 0 to 1" },
	{ "loss=-0.1", "a number from 0 to 1" },
	{ "loss=1e-3", "a number from 0 to 1" },
	{ "loss=0.1 ", "a number from 0 to 1" },
	{ "loss=0,1", "unknown key '1'" },
	{ "loss=0.1,loss=0.1", "twice" },
	{ "loss=0.1,", "unknown key ''" },
	{ "loss=0.1;", "unknown key ''" },
	{ ";", "unknown key ''" },
	{ "=1", "unknown key ''" },
	{ "loss==1", "a number from 0 to 1" },
	{ "delay_us=10000001", "0 to 10000000" },
	{ "stall_ms=10001", "0 to 10000" },
	{ "stall_ms=1,dir=tx", "dir=tx" },
	{ "seed=18446744073709551616", "2^64" },
	{ "rank=", "joined by '+'" },
	{ "rank=1+", "joined by '+'" },
	{ "rank=1++2", "joined by '+'" },
	{ "rank=a", "joined by '+'" },
	{ "dir=up", "rx or tx" },
	{ "kind=data", "multicast, control, repair" },
	{ "kind=repair+", "multicast, control, repair" },
	{ "seed=1;seed=1;seed=1;seed=1;seed=1;seed=1;seed=1;seed=1;"
	  "seed=1",
	  "more than 8" },
};

static void settings_are_parsed_strictly(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rv = mmc_fault_check(cases[i].text);

		if (cases[i].reason == NULL) {
			CHECK_EQ(rv, 0);
			continue;
		}
		if (!CHECK_EQ(rv, -MMC_EINVAL) ||
		    !CHECK(strstr(mmc_last_error(), cases[i].reason) != NULL))
			fprintf(stderr, "'%s' gave '%s'\n", cases[i].text,
				mmc_last_error());
	}
}

static void overlong_settings_are_refused(void)
{
	char text[MMC_FAULT_SIZE + 1];

	memset(text, '0', sizeof(text) - 1);
	memcpy(text, "seed=", 5);
	text[sizeof(text) - 1] = '\0';
	CHECK_EQ(mmc_fault_check(text), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "characters") != NULL);
}

static void unnoticed_corruption_is_refused(void)
{
	static const char both[] = "corrupt=0.1;corrupt=0.1,dir=tx,rank=5";
	struct mmc_endpoint *endpoint = NULL;

	CHECK_EQ(memory_try_wrap("corrupt=0.1", 0, MMC_CHECKSUM_OFF, &endpoint),
		 -MMC_EINVAL);
	CHECK(memory.closed);
	CHECK(strstr(mmc_last_error(), "CHECKSUM") != NULL);
	CHECK_EQ(memory_try_wrap(both, 0, MMC_CHECKSUM_HEADER, &endpoint),
		 -MMC_EINVAL);
	CHECK(memory.closed);
	CHECK_EQ(memory_try_wrap("nonsense", 0, MMC_CHECKSUM_FULL, &endpoint),
		 -MMC_EINVAL);
	CHECK(memory.closed);
	CHECK(endpoint == NULL);
	CHECK_EQ(memory_try_wrap(both, 0, MMC_CHECKSUM_FULL, &endpoint), 0);
	memory_unwrap(endpoint);
}

static int memory_place(struct mmc_endpoint *endpoint, void *to,
			const struct mmc_event *datagrams, uint32_t ndatagrams,
			uint32_t head_bytes, uint64_t cookie)
{
	(void)endpoint;
	(void)to;
	(void)datagrams;
	(void)head_bytes;
	CHECK_EQ(ndatagrams, 3);
	return cookie == 5 ? -MMC_EAGAIN : 0;
}

static const struct mmc_driver placing_driver = {
	.name = "memory",
	.now_ns = memory_now_ns,
	.poll = memory_poll,
	.send = memory_send,
	.place = memory_place,
	.close = memory_close,
};

static void nothing_is_wrapped_without_need(void)
{
	struct mmc_endpoint *endpoint = memory_wrap("");

	CHECK(endpoint == &memory.endpoint);
	endpoint = memory_wrap("loss=0");
	CHECK(endpoint->driver->place == NULL);
	memory_unwrap(endpoint);
	memory.endpoint.driver = &placing_driver;
	CHECK_EQ(mmc_fault_wrap("loss=0", 0, &memory.endpoint, MMC_CHECKSUM_OFF,
				false, &endpoint),
		 0);
	CHECK_EQ(endpoint->driver->place(endpoint, NULL, NULL, 3, 16, 5),
		 -MMC_EAGAIN);
	endpoint->driver->close(endpoint);
}

CHECK_MAIN(CHECK_TEST(settings_are_parsed_strictly),
	   CHECK_TEST(overlong_settings_are_refused),
	   CHECK_TEST(unnoticed_corruption_is_refused),
	   CHECK_TEST(nothing_is_wrapped_without_need))
