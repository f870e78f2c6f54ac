/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a guarded UDP endpoint still receives: everything of its ranks that names one of
 * its channels, and of strangers a sample. What others may bind.
 */
#include "check.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/wire/header.h"
#include "drivers/udp/endpoint.h"
#include "udp_team.h"

/* No bit of these is in the 16 that the checksum takes. */
#define CHANNEL UINT64_C(0x123456789abc0000)
#define OTHER UINT64_C(0x123456789abd0000)
#define NOBODYS UINT64_C(0x123556789abc0000)

/* A receive buffer of any size holds so many short datagrams. */
#define BURST 64
#define NBURSTS 100

static const uint64_t channels[] = { OTHER, CHANNEL };
static uint8_t datagram[MMC_HEADER_BYTES + 100];

/* Fills in the head of a datagram. The low bits of the channel hold any checksum. */
static void write_head(uint64_t channel, uint32_t number)
{
	const struct mmc_header header = { .channel = channel,
					   .index = number };

	mmc_header_encode(datagram, &header, sizeof(datagram),
			  MMC_CHECKSUM_HEADER);
}

static void guard_all(const struct team *team)
{
	for (uint32_t r = 0; r < team->nranks; r++)
		team->endpoints[r]->driver->guard(team->endpoints[r], channels,
						  2);
}

/* Sends one datagram of `channel` from a rank, to all or to one rank. */
static void send_one(struct mmc_endpoint *endpoint, uint64_t channel,
		     uint32_t number, uint32_t peer, bool control)
{
	struct mmc_parcel parcel = {
		.head = datagram,
		.head_bytes = sizeof(datagram),
		.peer = peer,
		.control = control,
	};

	write_head(channel, number);
	CHECK_EQ(endpoint->driver->send(endpoint, &parcel, 1), 0);
}

/* Sends trains of `channel` from rank 1, and checks that rank 0 gets all of them. */
static void expect_all(struct team *team, uint64_t channel, uint32_t peer,
		       bool control)
{
	for (uint32_t i = 0; i < BURST; i++) {
		send_one(team->endpoints[1], channel, i, peer, control);
		CHECK_EQ(receive_one(team->endpoints[0]).source, 1);
	}
}

static void ranks_are_heard(uint32_t nranks)
{
	struct team team;

	team_open_ranks(&team, nranks, 1);
	team_connect(&team);
	guard_all(&team);
	for (unsigned i = 0; i < 2; i++) {
		expect_all(&team, channels[i], MMC_PEER_ALL, false);
		expect_all(&team, channels[i], 0, false);
		expect_all(&team, channels[i], 0, true);
	}
	team_close(&team);
}

/* Ranks that name a channel of the team are heard as before. */
static void all_ranks_are_heard(void)
{
	ranks_are_heard(2);
	ranks_are_heard(3);
	ranks_are_heard(MMC_UDP_RANKS_APART_MAX + 1);
}

/* Takes all that has arrived: strangers' datagrams, cut. Returns how many. */
static uint32_t take_samples(struct mmc_endpoint *endpoint)
{
	struct mmc_event events[EVENTS_MAX];
	uint32_t ntaken = 0;
	int n;

	while ((n = endpoint->driver->poll(endpoint, events, EVENTS_MAX)) > 0)
		for (int i = 0; i < n; i++) {
			CHECK_EQ(events[i].nbytes, MMC_HEADER_BYTES);
			ntaken++;
		}
	return ntaken;
}

/*
 * Sends datagrams from `fd` to `to`; returns how many pass. Loopback delivers before
 * sendto() returns.
 */
static uint32_t count_samples(const struct team *team, int fd,
			      const struct sockaddr_in *to)
{
	uint32_t npassed = 0;

	for (uint32_t i = 0; i < NBURSTS; i++) {
		for (uint32_t j = 0; j < BURST; j++)
			CHECK_EQ(sendto(fd, datagram, sizeof(datagram), 0,
					(const struct sockaddr *)to,
					sizeof(*to)),
				 sizeof(datagram));
		npassed += take_samples(team->endpoints[0]);
	}
	return npassed;
}

/* Of BURST * NBURSTS = 6400 datagrams 100 pass on average, with a deviation of 10. */
static void expect_a_sample(uint32_t npassed)
{
	CHECK(npassed >= 40);
	CHECK(npassed <= 200);
}

static void strangers_are_sampled_by(uint32_t nranks)
{
	const struct in_addr via = { .s_addr = htonl(INADDR_LOOPBACK) };
	const struct mmc_udp *udp;
	struct team team;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof(via)),
		 0);
	team_open_ranks(&team, nranks, 1);
	team_connect(&team);
	udp = (const struct mmc_udp *)team.endpoints[0];
	guard_all(&team);
	/* They name no channel of the team, or one that they have heard. */
	for (unsigned i = 0; i < 2; i++) {
		bool by_source = i == 1;

		if (by_source && nranks > MMC_UDP_RANKS_APART_MAX)
			break;
		write_head(by_source ? CHANNEL : NOBODYS, 1);
		expect_a_sample(count_samples(&team, fd, &udp->groups[0]));
		expect_a_sample(count_samples(&team, fd, &udp->control[0]));
		expect_a_sample(count_samples(&team, fd, &udp->data[0]));
	}
	close(fd);
	team_close(&team);
}

/* Of strangers' datagrams one in MMC_SAMPLED passes, without its body. */
static void strangers_are_sampled(void)
{
	strangers_are_sampled_by(1);
	strangers_are_sampled_by(3);
	strangers_are_sampled_by(MMC_UDP_RANKS_APART_MAX + 1);
}

/* So are datagrams of a rank's address that name no channel of the team. */
static void forged_channels_are_sampled(void)
{
	uint32_t npassed = 0;
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	guard_all(&team);
	for (uint32_t i = 0; i < BURST * NBURSTS; i++) {
		send_one(team.endpoints[1], NOBODYS, i, MMC_PEER_ALL, false);
		npassed += take_samples(team.endpoints[0]);
	}
	expect_a_sample(npassed);
	team_close(&team);
}

/* Binds a socket that shares its port, as another program would, to `address`. */
static int bind_shared(const struct sockaddr_in *address, int option)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int one = 1;
	int rv;

	setsockopt(fd, SOL_SOCKET, option, &one, sizeof(one));
	rv = bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0
		     ? 0
		     : errno;
	close(fd);
	return rv;
}

/*
 * Tries, as another user, to bind the team's group and port, by either option, and the
 * port on all addresses. Returns whether all are refused.
 */
static bool is_refused_to_others(const struct sockaddr_in *group)
{
	const struct sockaddr_in any = { .sin_family = AF_INET,
					 .sin_port = group->sin_port };
	int status = 1;
	pid_t child = fork();

	if (child == 0) {
		if (setuid(65534) != 0)
			_exit(2);
		_exit(bind_shared(group, SO_REUSEADDR) == EADDRINUSE &&
				      bind_shared(group, SO_REUSEPORT) ==
					      EADDRINUSE &&
				      bind_shared(&any, SO_REUSEADDR) ==
					      EADDRINUSE &&
				      bind_shared(&any, SO_REUSEPORT) ==
					      EADDRINUSE
			      ? 0
			      : 1);
	}
	return CHECK(child > 0) && waitpid(child, &status, 0) == child &&
	       status == 0;
}

/*
 * Another user of the host gets no copy of what is multicast, since the kernel lets only
 * this user bind the groups' port. Only root can try; others' own sockets still can.
 */
static void other_users_cannot_join(void)
{
	const struct mmc_udp *udp;
	struct team team;

	team_open(&team, 1);
	team_connect(&team);
	udp = (const struct mmc_udp *)team.endpoints[0];
	CHECK_EQ(bind_shared(&udp->groups[0], SO_REUSEPORT), 0);
	if (geteuid() == 0)
		CHECK(is_refused_to_others(&udp->groups[0]));
	else
		printf("SKIP other_users_cannot_join: only root can become "
		       "another user\n");
	team_close(&team);
}

/* Two teams of one user that share group and port both get everything. */
static void teams_of_a_user_share_a_group(void)
{
	struct team first, second;

	team_open(&first, 1);
	team_connect(&first);
	nteams--;
	team_open(&second, 1);
	team_connect(&second);
	for (uint32_t i = 0; i < BURST; i++) {
		send_one(first.endpoints[1], CHANNEL, i, MMC_PEER_ALL, false);
		for (uint32_t r = 0; r < NRANKS; r++) {
			if (r != 1)
				CHECK_EQ(receive_one(first.endpoints[r]).source,
					 1);
			CHECK_EQ(receive_one(second.endpoints[r]).source,
				 MMC_PEER_UNKNOWN);
		}
	}
	team_close(&second);
	team_close(&first);
}

CHECK_MAIN(CHECK_TEST(all_ranks_are_heard), CHECK_TEST(strangers_are_sampled),
	   CHECK_TEST(forged_channels_are_sampled),
	   CHECK_TEST(other_users_cannot_join),
	   CHECK_TEST(teams_of_a_user_share_a_group))
