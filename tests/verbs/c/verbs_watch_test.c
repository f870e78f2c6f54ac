/* SPDX-License-Identifier: BSD-3-Clause */
/* If a thread sleeps on an endpoint's descriptors, whatever arrives wakes the thread. */
#include <pthread.h>

#include "support/prng.h"
#include "verbs_team.h"

/* The only subgroup of a team. */
#define SUBGROUP 0

/* The index and the payload of each datagram. No test looks at them. */
#define INDEX 1
#define BODY_BYTES 20

/* Sends a control message to `peer`. */
static void send_control(struct mmc_endpoint *endpoint, uint32_t peer)
{
	send_to(endpoint, peer, SUBGROUP, true, INDEX, BODY_BYTES);
}

/* Sends data to `peer`, which may be MMC_PEER_ALL. */
static void send_data(struct mmc_endpoint *endpoint, uint32_t peer)
{
	send_to(endpoint, peer, SUBGROUP, false, INDEX, BODY_BYTES);
}

/*
 * Waits a while, and checks that nothing arrives. Then checks that arm() returns false,
 * which allows this thread to sleep. Finally checks that no descriptor is readable.
 */
static void arm_when_quiet(struct mmc_endpoint *endpoint)
{
	CHECK(is_quiet(endpoint));
	CHECK(!endpoint->driver->arm(endpoint));
	CHECK(!sleep_until_readable(endpoint, 0));
}

/*
 * The last descriptor becomes readable when data arrives. The first one becomes readable
 * when a control message arrives, when a read ends, and when a connection breaks.
 */
enum { CONTROL = 1, DATA = 2 };

/*
 * Waits until a descriptor is readable. Returns CONTROL if the first one is, DATA if
 * the last one is, or both bits.
 */
static unsigned await_readable(struct mmc_endpoint *endpoint)
{
	struct pollfd watched[MMC_ENDPOINT_FDS_MAX];
	int fds[MMC_ENDPOINT_FDS_MAX];
	unsigned ncontrol = 0;
	unsigned count = endpoint->driver->fds(endpoint, fds, &ncontrol);
	unsigned found = 0;

	for (unsigned i = 0; i < count; i++)
		watched[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	poll(watched, count, PATIENCE_MS);
	if (watched[0].revents & POLLIN)
		found |= CONTROL;
	if (watched[count - 1].revents & POLLIN)
		found |= DATA;
	return found;
}

static void control_and_data_wake_separately(void)
{
	struct team team;

	team_start(&team, 8);
	for (int round = 0; round < 3; round++) {
		/*
		 * Ranks 1 and 3 send control messages. Rank 1 is a partner of
		 * rank 0, and sends over their connection. Rank 3 is not a
		 * partner, and sends a unicast datagram. Rank 2 multicasts data.
		 */
		arm_when_quiet(team.endpoints[0]);
		send_control(team.endpoints[1], 0);
		CHECK_EQ(await_readable(team.endpoints[0]), CONTROL);
		CHECK_EQ(receive_one(team.endpoints[0]).source, 1);
		arm_when_quiet(team.endpoints[0]);
		send_control(team.endpoints[3], 0);
		CHECK_EQ(await_readable(team.endpoints[0]), CONTROL);
		CHECK_EQ(receive_one(team.endpoints[0]).source, 3);
		arm_when_quiet(team.endpoints[0]);
		send_data(team.endpoints[2], MMC_PEER_ALL);
		CHECK_EQ(await_readable(team.endpoints[0]), DATA);
		CHECK_EQ(receive_one(team.endpoints[0]).source, 2);
	}
	team_close(&team);
}

static void a_read_wakes(void)
{
	static uint8_t memory[64];
	const uint32_t peer = 1;
	const uint64_t cookie = 0;
	struct mmc_grant grant;
	struct mmc_stretch stretch;
	struct team team;

	team_start(&team, 2);
	succeed(team.endpoints[1]->driver->grant_read(
		team.endpoints[1], 0, NULL, memory, sizeof(memory), &grant));
	stretch = (struct mmc_stretch){ grant.address, grant.key,
					sizeof(memory) };
	arm_when_quiet(team.endpoints[0]);
	CHECK_EQ(team.endpoints[0]->driver->read(team.endpoints[0], peer,
						 &stretch, 1, cookie),
		 0);
	CHECK_EQ(await_readable(team.endpoints[0]), CONTROL);
	CHECK_EQ(receive_one(team.endpoints[0]).kind, MMC_EVENT_READ);
	team.endpoints[1]->driver->revoke_read(team.endpoints[1], &grant);
	team_close(&team);
}

static void a_broken_connection_wakes(void)
{
	struct team team;

	team_start(&team, 2);
	team.endpoints[1]->driver->close(team.endpoints[1]);
	team.endpoints[1] = NULL;
	arm_when_quiet(team.endpoints[0]);
	send_control(team.endpoints[0], 1);
	CHECK_EQ(await_readable(team.endpoints[0]), CONTROL);
	CHECK_EQ(receive_one(team.endpoints[0]).kind, MMC_EVENT_BROKEN);
	team_close(&team);
}

/*
 * A message that arrives before arm() is called need not make a descriptor readable.
 * Therefore arm() itself reports that a message has arrived.
 */
static void arm_reports_what_arrived_before(void)
{
	struct mmc_endpoint *endpoint;
	struct mmc_event event;
	struct team team;

	team_start(&team, 2);
	endpoint = team.endpoints[0];
	for (int round = 0; round < 20; round++) {
		if (round % 2 == 0)
			send_control(team.endpoints[1], 0);
		else
			send_data(team.endpoints[1], 0);
		send_data(team.endpoints[1], MMC_PEER_ALL);
		for (int i = 0; i < 2; i++) {
			while (!endpoint->driver->arm(endpoint))
				CHECK(sleep_until_readable(endpoint,
							   PATIENCE_MS));
			/* arm() returns true until the event is polled. */
			CHECK(endpoint->driver->arm(endpoint));
			CHECK_EQ(endpoint->driver->poll(endpoint, &event, 1),
				 1);
			CHECK_EQ(event.source, 1);
		}
	}
	arm_when_quiet(endpoint);
	team_close(&team);
}

/*
 * Once a thread has polled the event that woke it, at most two false alarms follow: the
 * device may wake the thread once more, and arm() may return true once more.
 */
static void a_polled_event_wakes_at_most_twice_more(void)
{
	struct mmc_endpoint *endpoint;
	struct mmc_event event;
	struct team team;
	unsigned nwoken = 0;

	team_start(&team, 2);
	endpoint = team.endpoints[0];
	arm_when_quiet(endpoint);
	send_data(team.endpoints[1], MMC_PEER_ALL);
	CHECK_EQ(await_readable(endpoint), DATA);
	CHECK_EQ(endpoint->driver->poll(endpoint, &event, 1), 1);
	while (nwoken < 10 && (endpoint->driver->arm(endpoint) ||
			       sleep_until_readable(endpoint, QUIET_MS))) {
		CHECK_EQ(endpoint->driver->poll(endpoint, &event, 1), 0);
		nwoken++;
	}
	CHECK(nwoken <= 2);
	team_close(&team);
}

/* ---- at random times ----------------------------------------------------- */

enum { MESSAGES = 400, PAUSE_NS_MAX = 300000 };

/* Sends MESSAGES datagrams, each after a random pause and of a random kind. */
static void *send_at_random_times(void *argument)
{
	struct mmc_endpoint *endpoint = argument;
	struct mmc_prng prng = { .state = check_seed() };

	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct timespec pause = {
			.tv_nsec = (long)mmc_prng_below(&prng, PAUSE_NS_MAX),
		};

		nanosleep(&pause, NULL);
		switch (mmc_prng_below(&prng, 3)) {
		case 0:
			send_control(endpoint, 0);
			break;
		case 1:
			send_data(endpoint, 0);
			break;
		default:
			send_data(endpoint, MMC_PEER_ALL);
			break;
		}
	}
	return NULL;
}

/* A thread that sleeps whenever nothing is there receives every datagram. */
static void no_arrival_is_slept_through(void)
{
	struct mmc_event events[4];
	uint32_t nreceived = 0;
	pthread_t sender;
	struct team team;

	team_start(&team, 2);
	CHECK_EQ(pthread_create(&sender, NULL, send_at_random_times,
				team.endpoints[1]),
		 0);
	while (nreceived < MESSAGES) {
		int count = receive(team.endpoints[0], events, 4, PATIENCE_MS);

		if (!CHECK(count > 0))
			break;
		nreceived += (uint32_t)count;
	}
	CHECK_EQ(nreceived, MESSAGES);
	pthread_join(sender, NULL);
	team_close(&team);
}

CHECK_MAIN(CHECK_TEST(control_and_data_wake_separately),
	   CHECK_TEST(a_read_wakes), CHECK_TEST(a_broken_connection_wakes),
	   CHECK_TEST(arm_reports_what_arrived_before),
	   CHECK_TEST(a_polled_event_wakes_at_most_twice_more),
	   CHECK_TEST(no_arrival_is_slept_through))
