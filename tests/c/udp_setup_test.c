/* SPDX-License-Identifier: BSD-3-Clause */
/* The UDP driver before the first datagram: interfaces, options, addresses. */
#include "check.h"

#include <mpimcast/mmc.h>
#include <netinet/in.h>

#include "drivers/udp/peers.h"
#include "udp_team.h"

/* ---- devices ------------------------------------------------------------- */

static void interfaces_are_found_by_name_and_address(void)
{
	struct mmc_interface interface = { .address = 0 };

	CHECK_EQ(mmc_udp_interface("", 1, &interface), 0);
	CHECK(interface.loopback);
	CHECK_EQ(interface.address, INADDR_LOOPBACK);
	CHECK_EQ(mmc_udp_interface("nosuch0, 127.0.0.1", 0, &interface), 0);
	CHECK(strcmp(interface.name, "lo") == 0);
	CHECK_EQ(mmc_udp_interface(" lo", 0, &interface), 0);
	CHECK(interface.mtu_bytes > 1500);
	interface.mtu_bytes = 7;
	CHECK_EQ(mmc_udp_interface("nosuch0,192.0.2.1", 0, &interface),
		 -MMC_ENODEV);
	CHECK_EQ(interface.mtu_bytes, 7);
	CHECK(strstr(mmc_last_error(), "nosuch0") != NULL);
	CHECK(strstr(mmc_last_error(), "lo 127.0.0.1") != NULL);
}

static void interfaces_are_listed(void)
{
	struct mmc_interface first = { .address = 0 };
	struct mmc_interface found[16];
	uint32_t nfound = 99;

	CHECK_EQ(mmc_udp_interfaces(found, 16, &nfound), 0);
	CHECK(nfound <= 16);
	for (uint32_t i = 0; i < nfound; i++) {
		CHECK(!found[i].loopback);
		CHECK(found[i].netmask != 0);
		CHECK(found[i].mtu_bytes > 0);
	}
	if (mmc_udp_interface("", 0, &first) == 0)
		CHECK_EQ(found[0].address, first.address);
	else
		CHECK_EQ(nfound, 0);
	CHECK_EQ(mmc_udp_interfaces(found, 0, &nfound), 0);
	CHECK_EQ(nfound, 0);
}

static void routes_lead_to_interfaces(void)
{
	struct mmc_interface interface = { .address = 0 };
	struct mmc_interface same = { .address = 0 };

	CHECK_EQ(mmc_udp_route(INADDR_LOOPBACK, &interface), 0);
	CHECK(interface.loopback);
	CHECK(strcmp(interface.name, "lo") == 0);
	CHECK_EQ(interface.address, INADDR_LOOPBACK);
	CHECK(interface.mtu_bytes > 1500);
	interface.mtu_bytes = 7;
	CHECK_EQ(mmc_udp_route(INADDR_BROADCAST, &interface), -MMC_ENODEV);
	CHECK_EQ(interface.mtu_bytes, 7);
	CHECK(strstr(mmc_last_error(), "255.255.255.255") != NULL);
	/* An address of this host leads to the interface that has it. */
	if (mmc_udp_interface("", 0, &interface) != 0)
		return;
	CHECK_EQ(mmc_udp_route(interface.address, &same), 0);
	CHECK(strcmp(same.name, interface.name) == 0);
	CHECK_EQ(same.address, interface.address);
	CHECK(!same.loopback);
}

static void chunks_fit_the_interface(void)
{
	static const struct {
		uint32_t mtu_bytes, checksum, chunk_bytes;
	} cases[] = {
		{ 65536, 1, 8960 }, { 9216, 1, 8960 }, { 9000, 0, 8956 },
		{ 9000, 2, 8952 },  { 1500, 1, 1456 }, { 1500, 2, 1452 },
		{ 68, 1, 24 },	    { 44, 1, 0 },      { 48, 2, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mmc_interface interface = {
			.mtu_bytes = cases[i].mtu_bytes,
		};

		CHECK_EQ(mmc_udp_chunk_bytes(&interface, cases[i].checksum),
			 cases[i].chunk_bytes);
	}
}

/* ---- opening ------------------------------------------------------------- */

static void bad_options_are_refused(void)
{
	struct mmc_udp_options good = team_options(0, 1);
	struct mmc_udp_options bad[12];
	struct mmc_endpoint *endpoint = NULL;
	uint32_t buffer_bytes = 7;

	for (size_t i = 0; i < 12; i++)
		bad[i] = good;
	bad[0].nranks = 0;
	bad[1].rank = NRANKS;
	bad[2].nsubgroups = 0;
	bad[3].nsubgroups = MMC_UDP_SUBGROUPS_MAX + 1;
	bad[4].group = 0x7f000001;
	bad[5].port = 65536;
	bad[6].ttl = 256;
	bad[7].chunk_bytes = 0;
	bad[8].chunk_bytes = 65500;
	bad[9].ports = (struct mmc_ports){ .first = 0, .count = 1 };
	bad[10].ports = (struct mmc_ports){ .first = 65530, .count = 7 };
	bad[11].ports = (struct mmc_ports){ .first = 65536, .count = 1 };
	for (size_t i = 0; i < 12; i++)
		CHECK_EQ(mmc_udp_open(&bad[i], &buffer_bytes, &endpoint),
			 -MMC_EINVAL);
	bad[0] = good;
	bad[0].interface.address = 0xc0000201;
	CHECK_EQ(mmc_udp_open(&bad[0], &buffer_bytes, &endpoint), -MMC_EIO);
	CHECK(strstr(mmc_last_error(), "192.0.2.1") != NULL);
	CHECK(endpoint == NULL);
	CHECK_EQ(buffer_bytes, 7);
}

/* Opens `count` endpoints until one fails; returns what mmc_udp_open() did. */
static int open_within(struct mmc_ports ports, struct team *team,
		       uint32_t count)
{
	memset(team, 0, sizeof(*team));
	for (uint32_t i = 0; i < count; i++) {
		struct mmc_udp_options options = team_options(0, 1);
		int rv;

		options.ports = ports;
		rv = mmc_udp_open(&options, &team->buffer_bytes,
				  &team->endpoints[i]);
		if (rv != 0)
			return rv;
		team->endpoints[i]->driver->address(team->endpoints[i],
						    team->addresses);
		team->nranks++;
	}
	return 0;
}

/* Returns the first of this process's 20 ports; the kernel assigns none. */
static uint32_t own_ports(void)
{
	return 10000 + (uint32_t)getpid() % 1000 * 20;
}

/* Ports come from the given range; the first that is tried is random. */
static void own_ports_are_of_the_range(void)
{
	struct mmc_ports ports = { .first = own_ports(), .count = 8 };
	struct mmc_udp_address address;
	uint32_t nseen[8] = { 0 };
	struct team team;

	for (uint32_t round = 0; round < 20; round++) {
		CHECK_EQ(open_within(ports, &team, 1), 0);
		mmc_udp_address_decode(&address, team.addresses);
		CHECK(address.control_port - ports.first < ports.count);
		CHECK(address.data_port - ports.first < ports.count);
		CHECK(address.control_port != address.data_port);
		nseen[address.control_port - ports.first]++;
		team_close(&team);
	}
	CHECK(nseen[0] < 20);
}

static void a_full_range_is_an_error(void)
{
	struct mmc_ports ports = { .first = own_ports(), .count = 5 };
	struct team team;
	char words[64];

	/* Two endpoints take four ports, so the third finds one of the five. */
	CHECK_EQ(open_within(ports, &team, 3), -MMC_EIO);
	CHECK_EQ(team.nranks, 2);
	snprintf(words, sizeof(words),
		 "no port from %u to %u is free on 127.0.0.1", ports.first,
		 ports.first + 4);
	CHECK(strstr(mmc_last_error(), words) != NULL);
	CHECK(strstr(mmc_last_error(), "PORTS") != NULL);
	team_close(&team);
	/* Ports of closed endpoints and of the failed one are free again. */
	CHECK_EQ(open_within(ports, &team, 2), 0);
	team_close(&team);
}

/* If another program has the group's port, the error says so. */
static void a_port_of_another_program_is_reported(void)
{
	struct mmc_udp_options options = team_options(0, 1);
	struct mmc_endpoint *endpoint = NULL;
	struct sockaddr_in group = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(options.group),
		.sin_port = htons((uint16_t)options.port),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t buffer_bytes;

	CHECK_EQ(bind(fd, (const struct sockaddr *)&group, sizeof(group)), 0);
	CHECK_EQ(mmc_udp_open(&options, &buffer_bytes, &endpoint),
		 -MMC_EADDRINUSE);
	close(fd);
	CHECK_EQ(mmc_udp_open(&options, &buffer_bytes, &endpoint), 0);
	endpoint->driver->close(endpoint);
}

static void addresses_survive_encoding(void)
{
	struct mmc_udp_address address = {
		.rank = 5,
		.ip = 0x0a0b0c0d,
		.control_port = 0x1234,
		.data_port = 0xfedc,
		.listener_port = 0xcba9,
	};
	struct mmc_udp_address read = { .rank = 0 };
	uint8_t good[MMC_UDP_ADDRESS_BYTES], bad[MMC_UDP_ADDRESS_BYTES];

	mmc_udp_address_encode(good, &address);
	CHECK_EQ(mmc_udp_address_decode(&read, good), 0);
	CHECK_EQ(read.rank, 5);
	CHECK_EQ(read.ip, 0x0a0b0c0d);
	CHECK_EQ(read.control_port, 0x1234);
	CHECK_EQ(read.data_port, 0xfedc);
	CHECK_EQ(read.listener_port, 0xcba9);
	memcpy(bad, good, sizeof(bad));
	bad[0] ^= 1;
	CHECK_EQ(mmc_udp_address_decode(&read, bad), -MMC_EINVAL);
	memcpy(bad, good, sizeof(bad));
	bad[MMC_UDP_ADDRESS_BYTES - 1] = 1;
	CHECK_EQ(mmc_udp_address_decode(&read, bad), -MMC_EINVAL);
	memcpy(bad, good, sizeof(bad));
	bad[8] = 0xef;
	CHECK_EQ(mmc_udp_address_decode(&read, bad), -MMC_EINVAL);
	memcpy(bad, good, sizeof(bad));
	bad[14] = bad[15] = 0;
	CHECK_EQ(mmc_udp_address_decode(&read, bad), -MMC_EINVAL);
	memcpy(bad, good, sizeof(bad));
	bad[16] = bad[17] = 0;
	CHECK_EQ(mmc_udp_address_decode(&read, bad), -MMC_EINVAL);
}

static int connect_with(const struct team *team, const uint8_t *addresses)
{
	struct mmc_endpoint *endpoint = team->endpoints[0];

	return endpoint->driver->connect(endpoint, addresses);
}

/* Addresses in another rank's place are refused, and so are shared ports. */
static void foreign_addresses_are_refused(void)
{
	uint8_t bad[NRANKS * MMC_UDP_ADDRESS_BYTES];
	struct mmc_udp_address address;
	struct team team;

	/* Ranks 1 and 2 have each other's place. */
	team_open(&team, 1);
	memcpy(bad, team.addresses, MMC_UDP_ADDRESS_BYTES);
	memcpy(bad + MMC_UDP_ADDRESS_BYTES,
	       team.addresses + 2 * MMC_UDP_ADDRESS_BYTES,
	       MMC_UDP_ADDRESS_BYTES);
	memcpy(bad + 2 * MMC_UDP_ADDRESS_BYTES,
	       team.addresses + MMC_UDP_ADDRESS_BYTES, MMC_UDP_ADDRESS_BYTES);
	CHECK_EQ(connect_with(&team, bad), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "rank 1") != NULL);
	team_close(&team);

	/* Rank 2 has the ports of rank 0. */
	team_open(&team, 1);
	memcpy(bad, team.addresses, sizeof(bad));
	mmc_udp_address_decode(&address, bad);
	address.rank = 2;
	mmc_udp_address_encode(bad + 2 * MMC_UDP_ADDRESS_BYTES, &address);
	CHECK_EQ(connect_with(&team, bad), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "rank 2") != NULL);
	team_close(&team);

	/* The address of rank 1 has this rank's place. */
	team_open(&team, 1);
	memcpy(bad, team.addresses, sizeof(bad));
	mmc_udp_address_decode(&address, bad + MMC_UDP_ADDRESS_BYTES);
	address.rank = 0;
	mmc_udp_address_encode(bad, &address);
	CHECK_EQ(connect_with(&team, bad), -MMC_EINVAL);
	CHECK(strstr(mmc_last_error(), "rank 0") != NULL);
	team_close(&team);
}

CHECK_MAIN(CHECK_TEST(interfaces_are_found_by_name_and_address),
	   CHECK_TEST(interfaces_are_listed),
	   CHECK_TEST(routes_lead_to_interfaces),
	   CHECK_TEST(chunks_fit_the_interface),
	   CHECK_TEST(bad_options_are_refused),
	   CHECK_TEST(own_ports_are_of_the_range),
	   CHECK_TEST(a_full_range_is_an_error),
	   CHECK_TEST(a_port_of_another_program_is_reported),
	   CHECK_TEST(addresses_survive_encoding),
	   CHECK_TEST(foreign_addresses_are_refused))
