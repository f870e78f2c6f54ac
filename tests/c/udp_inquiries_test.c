/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel of a silent rank answers for it, over loopback. */
#include <dirent.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "drivers/udp/endpoint.h"
#include "udp_team.h"

#define NSTRANGERS 200

static struct mmc_udp *udp_of(struct mmc_endpoint *endpoint)
{
	return (struct mmc_udp *)endpoint;
}

static void inquire(struct team *team, uint32_t peer)
{
	team->endpoints[0]->driver->inquire(team->endpoints[0], peer);
}

/*
 * Returns the next finding of rank 0, which must be about `peer`; if `asking`, rank 0
 * inquires again and again.
 */
static enum mmc_event_kind find(struct team *team, uint32_t peer, bool asking)
{
	struct mmc_endpoint *endpoint = team->endpoints[0];
	struct mmc_event event = { .source = MMC_PEER_NONE };

	for (int left_ms = PATIENCE_MS; left_ms > 0; left_ms -= QUIET_MS) {
		if (asking)
			inquire(team, peer);
		wait_readable(endpoint, QUIET_MS);
		if (endpoint->driver->poll(endpoint, &event, 1) == 1)
			break;
	}
	CHECK_EQ(event.source, peer);
	return event.kind;
}

static enum mmc_event_kind next_finding(struct team *team, uint32_t peer)
{
	return find(team, peer, false);
}

/* Takes in what arrives at a rank, as a running process does. */
static void run_rank(struct mmc_endpoint *endpoint)
{
	struct mmc_event events[EVENTS_MAX];

	while (wait_readable(endpoint, QUIET_MS))
		endpoint->driver->poll(endpoint, events, EVENTS_MAX);
}

static unsigned count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

/* No thread runs rank 1 here, but its kernel answers each question. */
static void a_stopped_rank_is_alive(void)
{
	struct team team;
	unsigned nfds;

	team_open(&team, 1);
	team_connect(&team);
	inquire(&team, 1);
	CHECK_EQ(next_finding(&team, 1), MMC_EVENT_ALIVE);
	nfds = count_fds();
	for (unsigned i = 0; i < 20; i++)
		CHECK_EQ(find(&team, 1, true), MMC_EVENT_ALIVE);
	CHECK_EQ(count_fds(), nfds);
	CHECK(is_quiet(team.endpoints[0]));
	team_close(&team);
}

/* Once a rank is heard, the connection to it is closed and the finding forgotten. */
static void a_heard_rank_is_not_asked_about(void)
{
	const uint8_t head[MMC_HEADER_BYTES] = { 0 };
	const struct mmc_parcel word = {
		.head = head,
		.head_bytes = sizeof(head),
		.peer = 0,
		.control = true,
	};
	struct team team;
	struct mmc_endpoint *peer;
	unsigned nfds;

	team_open(&team, 1);
	team_connect(&team);
	peer = team.endpoints[1];
	nfds = count_fds();
	inquire(&team, 1);
	CHECK_EQ(next_finding(&team, 1), MMC_EVENT_ALIVE);
	CHECK_EQ(count_fds(), nfds + 1);
	CHECK_EQ(peer->driver->send(peer, &word, 1), 0);
	CHECK_EQ(receive_one(team.endpoints[0]).kind, MMC_EVENT_DATAGRAM);
	CHECK_EQ(count_fds(), nfds);
	CHECK_EQ(udp_of(team.endpoints[0])->inquiries.count, 0);
	team_close(&team);
}

/* A rank that ends before it accepts a question is found gone by that one. */
static void a_rank_that_ends_is_gone(void)
{
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	inquire(&team, 1);
	CHECK_EQ(next_finding(&team, 1), MMC_EVENT_ALIVE);
	team.endpoints[1]->driver->close(team.endpoints[1]);
	CHECK_EQ(next_finding(&team, 1), MMC_EVENT_GONE);
	inquire(&team, 2);
	CHECK_EQ(next_finding(&team, 2), MMC_EVENT_ALIVE);
	team.endpoints[1] = team.endpoints[2];
	team.nranks = 2;
	team_close(&team);
}

/* A running process closes connections, which does not mean that it has ended. */
static void a_closed_connection_is_no_end(void)
{
	struct team team;
	bool alive = true;

	team_open(&team, 1);
	team_connect(&team);
	for (unsigned i = 0; i < 5; i++) {
		struct mmc_event event;

		inquire(&team, 1);
		run_rank(team.endpoints[1]);
		while (wait_readable(team.endpoints[0], QUIET_MS))
			if (team.endpoints[0]->driver->poll(team.endpoints[0],
							    &event, 1) == 1)
				alive &= event.kind == MMC_EVENT_ALIVE;
	}
	CHECK(alive);
	team_close(&team);
}

/* Strangers who connect, send garbage and stay hold no descriptor of this process. */
static void strangers_hold_nothing(void)
{
	struct sockaddr_in address;
	int strangers[NSTRANGERS];
	struct team team;
	unsigned nfds;

	team_open(&team, 1);
	team_connect(&team);
	address = udp_of(team.endpoints[0])->listeners[1];
	nfds = count_fds();
	for (unsigned i = 0; i < NSTRANGERS; i++) {
		strangers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(strangers[i], (const struct sockaddr *)&address,
			sizeof(address));
		send(strangers[i], "garbage", 7, MSG_NOSIGNAL);
		run_rank(team.endpoints[1]);
	}
	CHECK_EQ(count_fds(), nfds + NSTRANGERS);
	inquire(&team, 1);
	CHECK_EQ(next_finding(&team, 1), MMC_EVENT_ALIVE);
	for (unsigned i = 0; i < NSTRANGERS; i++)
		close(strangers[i]);
	team_close(&team);
}

/* A child of fork() does not keep the parent's listeners open, whatever it does. */
static void a_child_vouches_for_nobody(void)
{
	struct team team;
	char byte = 0;
	int ends[2];
	pid_t child;

	team_open(&team, 1);
	team_connect(&team);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	child = fork();
	if (child == 0) {
		close(ends[1]);
		_exit(write(ends[0], &byte, 1) != 1 ||
		      read(ends[0], &byte, 1) != 0);
	}
	close(ends[0]);
	CHECK_EQ(read(ends[1], &byte, 1), 1);
	team.endpoints[1]->driver->close(team.endpoints[1]);
	inquire(&team, 1);
	CHECK_EQ(next_finding(&team, 1), MMC_EVENT_GONE);
	close(ends[1]);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	team.endpoints[1] = team.endpoints[2];
	team.nranks = 2;
	team_close(&team);
}

/* Without descriptors nothing is found, and no endpoint spins. */
static void without_descriptors(void)
{
	struct rlimit before, none;
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_cur = 3, .rlim_max = before.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	inquire(&team, 1);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	CHECK(is_quiet(team.endpoints[0]));
	/* Without descriptors rank 1 cannot accept either, and sleeps all the same. */
	usleep(MMC_UDP_RECONNECT_NS / 1000);
	inquire(&team, 1);
	CHECK_EQ(next_finding(&team, 1), MMC_EVENT_ALIVE);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	run_rank(team.endpoints[1]);
	CHECK(is_quiet(team.endpoints[1]));
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	team_close(&team);
}

CHECK_MAIN(CHECK_TEST(a_stopped_rank_is_alive),
	   CHECK_TEST(a_heard_rank_is_not_asked_about),
	   CHECK_TEST(a_rank_that_ends_is_gone),
	   CHECK_TEST(a_closed_connection_is_no_end),
	   CHECK_TEST(strangers_hold_nothing),
	   CHECK_TEST(a_child_vouches_for_nobody),
	   CHECK_TEST(without_descriptors))
