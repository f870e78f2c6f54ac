/* SPDX-License-Identifier: BSD-3-Clause */
/* Which devices, options, addresses and groups are accepted or refused. */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "verbs_team.h"

#define DEVICE_FILE "/dev/infiniband/uverbs0"

static bool said(const char *what)
{
	if (strstr(mmc_last_error(), what) != NULL)
		return true;
	fprintf(stderr, "'%s' does not say '%s'\n", mmc_last_error(), what);
	return false;
}

/* ---- devices ------------------------------------------------------------- */

static void all_ports_are_listed(void)
{
	struct mmc_device found[NDEVICES];
	uint32_t nfound;

	CHECK_EQ(mmc_verbs_list(found, 3, &nfound), 0);
	CHECK_EQ(nfound, NDEVICES);
	CHECK_EQ(mmc_verbs_list(found, NDEVICES, &nfound), 0);
	for (uint32_t i = 0; i < NDEVICES; i++) {
		const struct mmc_device *device = &found[i];
		unsigned number = 99;
		char interface[16];

		CHECK_EQ(sscanf(device->name, "rxe%u", &number), 1);
		snprintf(interface, sizeof(interface), "net%u", number);
		CHECK(strcmp(device->interface, interface) == 0);
		CHECK_EQ(device->address, 0x0a080001 + number);
		CHECK_EQ(mmc_verbs_gid_ipv4(device->gid), device->address);
		CHECK_EQ(device->port, 1);
		CHECK_EQ(device->ethernet, 1);
		CHECK_EQ(device->state, IBV_PORT_ACTIVE);
		CHECK_EQ(device->mtu_bytes, 4096);
		CHECK_EQ(device->lid, 0);
		CHECK(device->groups_max > 0);
		CHECK(device->group_members_max > 0);
	}
}

static void check_chosen_device(const char *devices, uint32_t place,
				const char *name)
{
	struct mmc_device found = { .name = "" };

	CHECK_EQ(mmc_verbs_device(devices, place, &found), 0);
	if (!CHECK(strcmp(found.name, name) == 0))
		fprintf(stderr, "'%s' at %u: %s\n", devices, place, found.name);
}

static void a_device_is_chosen_by_name_and_place(void)
{
	struct mmc_device all[NDEVICES];
	uint32_t nfound;

	CHECK_EQ(mmc_verbs_list(all, NDEVICES, &nfound), 0);
	for (uint32_t place = 0; place < 2 * NDEVICES; place++)
		check_chosen_device("", place, all[place % NDEVICES].name);
	check_chosen_device("rxe3", 0, "rxe3");
	check_chosen_device("rxe3", 5, "rxe3");
	check_chosen_device(" rxe4:1 , rxe2", 0, "rxe4");
	check_chosen_device(" rxe4:1 , rxe2", 3, "rxe2");
	check_chosen_device("nothing,rxe6", 7, "rxe6");
}

/* If no device has a listed name, the error says so. */
static void who_is_not_there_is_named(void)
{
	static const char *const none[] = { "rxe",   "rxe12",	"rxe1:2",
					    "rxe1:", "rxe1:11", "mlx5_0" };
	struct mmc_device found;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		CHECK_EQ(mmc_verbs_device(none[i], 0, &found), -MMC_ENODEV);
		CHECK(said("none has one of these names"));
	}
}

static void a_port_that_is_down_is_not_chosen(void)
{
	struct mmc_device found;

	CHECK_EQ(system("ip link set net7 down"), 0);
	CHECK_EQ(mmc_verbs_device("rxe7", 0, &found), -MMC_ENODEV);
	CHECK(said("rxe7:1 is not active"));
	check_chosen_device("rxe7,rxe5", 0, "rxe5");
	CHECK_EQ(system("ip link set net7 up"), 0);
	CHECK_EQ(system("ip route replace 10.8.0.0/24 dev net7 src 10.8.0.8 "
			"table 1007 && "
			"ip route replace 224.0.0.0/4 dev net7 src 10.8.0.8 "
			"table 1007"),
		 0);
	check_chosen_device("rxe7", 0, "rxe7");
}

static void chunks_fill_packets(void)
{
	struct mmc_device device = { .ethernet = 1, .mtu_bytes = 4096 };

	CHECK_EQ(mmc_verbs_chunk_bytes(&device, MMC_CHECKSUM_HEADER), 4080);
	CHECK_EQ(mmc_verbs_chunk_bytes(&device, MMC_CHECKSUM_OFF), 4080);
	CHECK_EQ(mmc_verbs_chunk_bytes(&device, MMC_CHECKSUM_FULL), 4076);
	device.mtu_bytes = 16;
	CHECK_EQ(mmc_verbs_chunk_bytes(&device, MMC_CHECKSUM_HEADER), 0);
	/* An InfiniBand group has the MTU of IPoIB, if that is less. */
	device = (struct mmc_device){ .mtu_bytes = 4096, .interface = "net0" };
	CHECK_EQ(mmc_verbs_chunk_bytes(&device, MMC_CHECKSUM_HEADER), 4080);
	CHECK_EQ(system("ip link set net6 mtu 2044"), 0);
	memcpy(device.interface, "net6", 5);
	CHECK_EQ(mmc_verbs_chunk_bytes(&device, MMC_CHECKSUM_HEADER), 2032);
	CHECK_EQ(system("ip link set net6 mtu 4200"), 0);
}

/* ---- without the right --------------------------------------------------- */

/* Runs a check in a child process, which may give up rights. */
static void in_a_child(bool (*check)(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		bool held = check();

		fflush(stderr);
		_exit(held ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK_EQ(status, 0);
}

static bool refuses_without_permission(void)
{
	struct mmc_device found;

	return chmod(DEVICE_FILE, 0600) == 0 && seteuid(65534) == 0 &&
	       mmc_verbs_device("rxe0", 0, &found) == -MMC_ENODEV &&
	       said("rxe0 cannot be opened: " DEVICE_FILE) &&
	       said("Permission denied");
}

static bool refuses_without_memory(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[2] = { { .effective = 0 } };
	const struct rlimit limit = { 1 << 20, 1 << 20 };
	struct mmc_team_options options = team_options(2);
	struct mmc_endpoint *endpoint;
	uint32_t buffer_bytes;

	return mmc_verbs_device("rxe1", 0, &options.device) == 0 &&
	       setrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	       syscall(SYS_capset, &header, none) == 0 &&
	       mmc_verbs_open(&options, &buffer_bytes, &endpoint) ==
		       -MMC_ENOMEM &&
	       said("rxe1: cannot register memory") && said("ulimit -l");
}

/* Without a right, opening fails and the error names what is missing. */
static void rights_that_lack_are_named(void)
{
	in_a_child(refuses_without_permission);
	CHECK_EQ(chmod(DEVICE_FILE, 0666), 0);
	in_a_child(refuses_without_memory);
}

/* ---- options ------------------------------------------------------------- */

static void check_refused(struct mmc_team_options options, int error)
{
	struct mmc_endpoint *endpoint;
	uint32_t buffer_bytes;

	if (options.device.name[0] == '\0')
		succeed(mmc_verbs_device("rxe0", 0, &options.device));
	CHECK_EQ(mmc_verbs_open(&options, &buffer_bytes, &endpoint), error);
	CHECK(mmc_last_error()[0] != '\0');
}

#define CHECK_REFUSED(error, member, value)                                    \
	do {                                                                   \
		struct mmc_team_options wrong = team_options(4);               \
		wrong.member = (value);                                        \
		check_refused(wrong, (error));                                 \
	} while (0)

static void options_out_of_range_are_refused(void)
{
	CHECK_REFUSED(-MMC_EINVAL, nranks, 0);
	CHECK_REFUSED(-MMC_EINVAL, nranks, (1 << MMC_ROUNDS_MAX) + 1);
	CHECK_REFUSED(-MMC_EINVAL, rank, 4);
	CHECK_REFUSED(-MMC_EINVAL, subgroups, 0);
	CHECK_REFUSED(-MMC_EINVAL, subgroups, MMC_VERBS_SUBGROUPS_MAX + 1);
	CHECK_REFUSED(-MMC_EINVAL, group, 0x0a000001);
	CHECK_REFUSED(-MMC_EINVAL, chunk_bytes, 0);
	CHECK_REFUSED(-MMC_EINVAL, chunk_bytes, CHUNK_BYTES + 1);
	CHECK_REFUSED(-MMC_EINVAL, chunk_bytes, UINT32_MAX);
	CHECK_REFUSED(-MMC_EINVAL, join, MMC_JOIN_ATTACH + 1);
	CHECK_REFUSED(-MMC_EINVAL, qkey, 0x80000001);
	CHECK_REFUSED(-MMC_EINVAL, pkey_index, 65536);
	CHECK_REFUSED(-MMC_EINVAL, service_level, 16);
	CHECK_REFUSED(-MMC_EINVAL, traffic_class, 256);
	CHECK_REFUSED(-MMC_EINVAL, ttl, 256);
	CHECK_REFUSED(-MMC_EINVAL, receives,
		      7); /* the least is two for each of the four ranks */
}

/* Too many receives and a missing device are refused. */
static void what_the_device_has_not_is_refused(void)
{
	struct mmc_team_options options = team_options(4);

	CHECK_REFUSED(-MMC_EIO, receives, 10000000);
	succeed(mmc_verbs_device("rxe0", 0, &options.device));
	memcpy(options.device.name, "mlx9", 5);
	check_refused(options, -MMC_ENODEV);
}

static void one_rank_is_a_team_too(void)
{
	struct team team;

	team_start(&team, 1);
	send_to(team.endpoints[0], MMC_PEER_ALL, 0, false, 1, 10);
	CHECK(is_quiet(team.endpoints[0]));
	team_close(&team);
}

static void the_largest_team_opens(void)
{
	struct mmc_team_options options = team_options(1 << MMC_ROUNDS_MAX);
	uint8_t address[MMC_ADDRESS_BYTES_MAX];
	struct mmc_endpoint *endpoint;
	uint32_t buffer_bytes;

	endpoint = open_rank(options, 77, 0, &buffer_bytes);
	CHECK(endpoint->address_bytes <= MMC_ADDRESS_BYTES_MAX);
	endpoint->driver->address(endpoint, address);
	endpoint->driver->close(endpoint);
}

/* ---- addresses ----------------------------------------------------------- */

static int connect_first(const struct team *team)
{
	return team->endpoints[0]->driver->connect(team->endpoints[0],
						   team->addresses);
}

/* Opens a team, has `change` spoil its addresses, and expects them to be refused. */
static void refuse_changed(void (*change)(struct team *team), const char *why)
{
	struct mmc_team_options options = team_options(3);
	struct team team;

	team_open(&team, &options);
	change(&team);
	CHECK_EQ(connect_first(&team), -MMC_EINVAL);
	CHECK(said(why));
	team_close(&team);
}

static void exchange(struct team *team)
{
	uint8_t kept[MMC_ADDRESS_BYTES_MAX];
	uint32_t nbytes = team->endpoints[0]->address_bytes;

	memcpy(kept, address_of(team, 1), nbytes);
	memcpy(address_of(team, 1), address_of(team, 2), nbytes);
	memcpy(address_of(team, 2), kept, nbytes);
}

static void spoil_tag(struct team *team)
{
	address_of(team, 2)[0] ^= 1;
}

static void spoil_own(struct team *team)
{
	address_of(team, 0)[39] ^= 1;
}

static void make_infiniband(struct team *team)
{
	uint8_t *address = address_of(team, 1);

	address[24] = 0;
	address[25] = 5;
	address[27] = 0;
}

static void copy_queue(struct team *team)
{
	uint8_t *to = address_of(team, 2);
	const uint8_t *from = address_of(team, 1);

	memcpy(to + 8, from + 8, 16);
	memcpy(to + 40, from + 40, 4);
}

static void addresses_that_cannot_be_are_refused(void)
{
	refuse_changed(exchange, "rank 1 did not publish a verbs address");
	refuse_changed(spoil_tag, "rank 2 did not publish a verbs address");
	refuse_changed(spoil_own, "rank 0 is not its own");
	refuse_changed(make_infiniband, "rank 1 is on InfiniBand");
	refuse_changed(copy_queue,
		       "rank 2 has the same address as another rank");
}

/* ---- groups -------------------------------------------------------------- */

static void groups_that_cannot_be_joined_say_why(void)
{
	static const enum mmc_join ways[] = { MMC_JOIN_CM, MMC_JOIN_ATTACH,
					      MMC_JOIN_AUTO };

	for (int i = 0; i < 3; i++) {
		struct mmc_team_options options = team_options(1);
		struct mmc_endpoint *endpoint;
		uint8_t address[MMC_ADDRESS_BYTES_MAX];
		uint32_t buffer_bytes;

		succeed(mmc_verbs_device("rxe0", 0, &options.device));
		options.device.address = 0x0a0900fe;
		options.join = ways[i];
		succeed(mmc_verbs_open(&options, &buffer_bytes, &endpoint));
		endpoint->driver->address(endpoint, address);
		CHECK_EQ(endpoint->driver->connect(endpoint, address),
			 -MMC_EIO);
		if (ways[i] != MMC_JOIN_ATTACH)
			CHECK(said("bind to the interface's address"));
		if (ways[i] != MMC_JOIN_CM)
			CHECK(said("rxe0: cannot join 239."));
		endpoint->driver->close(endpoint);
	}
}

static void the_manager_joins_from_the_right_device_only(void)
{
	struct mmc_team_options options = team_options(1);
	uint8_t address[MMC_ADDRESS_BYTES_MAX];
	struct mmc_endpoint *endpoint;
	uint32_t buffer_bytes;

	succeed(mmc_verbs_device("rxe0", 0, &options.device));
	options.device.address++;
	options.join = MMC_JOIN_CM;
	succeed(mmc_verbs_open(&options, &buffer_bytes, &endpoint));
	endpoint->driver->address(endpoint, address);
	CHECK_EQ(endpoint->driver->connect(endpoint, address), -MMC_EIO);
	CHECK(said("belongs to another device"));
	endpoint->driver->close(endpoint);
}

/* Leaving is complete: a group can be joined more often than it may have members. */
static void groups_can_be_joined_again_and_again(void)
{
	struct mmc_team_options options = team_options(2);

	for (int i = 0; i < 40; i++) {
		struct team team;

		options.join = i % 2 == 0 ? MMC_JOIN_CM : MMC_JOIN_ATTACH;
		team_open(&team, &options);
		team_connect(&team);
		send_to(team.endpoints[0], MMC_PEER_ALL, 0, false, 1, 10);
		CHECK_EQ(receive_one(team.endpoints[1]).source, 0);
		team_close(&team);
	}
}

CHECK_MAIN(CHECK_TEST(all_ports_are_listed),
	   CHECK_TEST(a_device_is_chosen_by_name_and_place),
	   CHECK_TEST(who_is_not_there_is_named),
	   CHECK_TEST(a_port_that_is_down_is_not_chosen),
	   CHECK_TEST(chunks_fill_packets),
	   CHECK_TEST(rights_that_lack_are_named),
	   CHECK_TEST(options_out_of_range_are_refused),
	   CHECK_TEST(what_the_device_has_not_is_refused),
	   CHECK_TEST(one_rank_is_a_team_too),
	   CHECK_TEST(the_largest_team_opens),
	   CHECK_TEST(addresses_that_cannot_be_are_refused),
	   CHECK_TEST(groups_that_cannot_be_joined_say_why),
	   CHECK_TEST(the_manager_joins_from_the_right_device_only),
	   CHECK_TEST(groups_can_be_joined_again_and_again))
