/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/descriptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "check.h"

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd watched = { .fd = fd, .events = POLLIN };

	return poll(&watched, 1, timeout_ms) == 1;
}

static void wakes_until_drained(void)
{
	int fd = eventfd(0, EFD_NONBLOCK);

	CHECK(!is_readable(fd, 0));
	for (unsigned nwakes = 1; nwakes < 4; nwakes++) {
		for (unsigned i = 0; i < nwakes; i++)
			mmc_descriptor_wake(fd);
		CHECK(is_readable(fd, 0));
		CHECK(is_readable(fd, 0));
		mmc_descriptor_drain(fd);
		CHECK(!is_readable(fd, 0));
	}
	close(fd);
}

/* Waking and draining never block, whatever the counter holds. */
static void never_blocks(void)
{
	uint64_t most = UINT64_MAX - 1;
	int fd = eventfd(0, EFD_NONBLOCK);

	mmc_descriptor_drain(fd);
	CHECK_EQ(write(fd, &most, sizeof(most)), sizeof(most));
	mmc_descriptor_wake(fd);
	CHECK(is_readable(fd, 0));
	mmc_descriptor_drain(fd);
	CHECK(!is_readable(fd, 0));
	close(fd);
}

static void drains_a_timer(void)
{
	const struct itimerspec soon = { .it_value = { .tv_nsec = 1 } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);

	CHECK_EQ(timerfd_settime(fd, 0, &soon, NULL), 0);
	CHECK(is_readable(fd, 10000));
	mmc_descriptor_drain(fd);
	CHECK(!is_readable(fd, 0));
	close(fd);
}

CHECK_MAIN(CHECK_TEST(wakes_until_drained), CHECK_TEST(never_blocks),
	   CHECK_TEST(drains_a_timer))
