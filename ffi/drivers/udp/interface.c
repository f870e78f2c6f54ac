/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <mpimcast/mmc.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "drivers/udp/endpoint.h"
#include "support/error.h"

/*
 * No chunk is longer than a jumbo Ethernet frame. Loopback would carry datagrams of 64
 * KiB, but the receive buffer of an ordinary user holds only six of those, and each is
 * lost as a whole.
 */
uint32_t mmc_udp_chunk_bytes(const struct mmc_interface *interface,
			     uint32_t checksum)
{
	uint32_t around_bytes =
		mmc_udp_around_bytes((enum mmc_checksum)checksum);

	if (interface->mtu_bytes <= around_bytes)
		return 0;
	if (interface->mtu_bytes - around_bytes > MMC_UDP_CHUNK_BYTES_MAX)
		return MMC_UDP_CHUNK_BYTES_MAX;
	return interface->mtu_bytes - around_bytes;
}

static struct in_addr read_ipv4(const struct sockaddr *address)
{
	struct sockaddr_in in = { 0 };

	if (address != NULL)
		memcpy(&in, address, sizeof(in));
	return in.sin_addr;
}

static struct in_addr ipv4_of(const struct ifaddrs *entry)
{
	return read_ipv4(entry->ifa_addr);
}

/*
 * Returns whether an interface is up, has an IPv4 address and can multicast. Loopback
 * can, although its flags do not say so.
 */
static bool is_usable(const struct ifaddrs *entry)
{
	unsigned up = IFF_UP | IFF_RUNNING;

	return entry->ifa_addr != NULL &&
	       entry->ifa_addr->sa_family == AF_INET &&
	       (entry->ifa_flags & up) == up &&
	       (entry->ifa_flags & (IFF_MULTICAST | IFF_LOOPBACK)) != 0;
}

/* Returns whether `device`, a name or an address, means this interface. */
static bool is_named(const struct ifaddrs *entry, const char *device)
{
	struct in_addr address;

	if (strcmp(entry->ifa_name, device) == 0)
		return true;
	return inet_pton(AF_INET, device, &address) == 1 &&
	       ipv4_of(entry).s_addr == address.s_addr;
}

static const struct ifaddrs *find_named(const struct ifaddrs *list,
					const char *device)
{
	for (; list != NULL; list = list->ifa_next)
		if (is_usable(list) && is_named(list, device))
			return list;
	return NULL;
}

static const struct ifaddrs *find_first(const struct ifaddrs *list,
					bool loopback)
{
	for (; list != NULL; list = list->ifa_next) {
		bool is_loopback = (list->ifa_flags & IFF_LOOPBACK) != 0;

		if (is_usable(list) && is_loopback == loopback)
			return list;
	}
	return NULL;
}

/*
 * Returns the first usable interface that is named in `devices`, names or IPv4
 * addresses separated by commas or spaces; NULL if there is none.
 */
static const struct ifaddrs *find_any(const struct ifaddrs *list,
				      const char *devices)
{
	const struct ifaddrs *found = NULL;

	while (*devices != '\0' && found == NULL) {
		size_t length = strcspn(devices, ", ");
		char device[MMC_NAME_SIZE];

		if (length > 0 && length < sizeof(device)) {
			memcpy(device, devices, length);
			device[length] = '\0';
			found = find_named(list, device);
		}
		devices += length;
		devices += strspn(devices, ", ");
	}
	return found;
}

/* Writes the usable interfaces, such as "lo 127.0.0.1, eth0 10.0.0.1", or "none". */
static void list_usable(const struct ifaddrs *list, char *text, size_t size)
{
	size_t used = 0;

	snprintf(text, size, "none");
	for (; list != NULL; list = list->ifa_next) {
		char ip[INET_ADDRSTRLEN];
		struct in_addr address;
		int written;

		if (!is_usable(list))
			continue;
		address = ipv4_of(list);
		inet_ntop(AF_INET, &address, ip, sizeof(ip));
		written = snprintf(text + used, size - used, "%s%s %s",
				   used > 0 ? ", " : "", list->ifa_name, ip);
		if (written < 0 || (size_t)written >= size - used)
			return;
		used += (size_t)written;
	}
}

/* Sets the error's text: why no interface was found. */
static void explain(const struct ifaddrs *list, const char *devices,
		    int same_host)
{
	char usable[256];

	list_usable(list, usable, sizeof(usable));
	if (*devices != '\0')
		mmc_error_set("none of the interfaces '%s' is up with "
			      "multicast and an IPv4 address; usable: %s",
			      devices, usable);
	else
		mmc_error_set("no %s interface is up with multicast and an "
			      "IPv4 address; usable: %s",
			      same_host ? "loopback" : "network", usable);
}

/* Returns the MTU, or 0 if it cannot be read. */
static uint32_t query_mtu(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_mtu = 0 };
	int rv;

	if (fd < 0)
		return 0;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	rv = ioctl(fd, SIOCGIFMTU, &request);
	close(fd);
	return rv == 0 && request.ifr_mtu > 0 ? (uint32_t)request.ifr_mtu : 0;
}

/* Writes what is known of `entry` to `found`. Returns 0 or -MMC_ENODEV. */
static int describe(const struct ifaddrs *entry, struct mmc_interface *found)
{
	struct mmc_interface read = {
		.address = ntohl(ipv4_of(entry).s_addr),
		.netmask = ntohl(read_ipv4(entry->ifa_netmask).s_addr),
		.mtu_bytes = query_mtu(entry->ifa_name),
		.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0,
	};

	if (read.mtu_bytes == 0) {
		mmc_error_set("cannot read the MTU of %s", entry->ifa_name);
		return -MMC_ENODEV;
	}
	snprintf(read.name, sizeof(read.name), "%s", entry->ifa_name);
	*found = read;
	return 0;
}

/*
 * Lists the host's interfaces, to be freed by freeifaddrs(). Returns 0 or -MMC_ENODEV.
 */
static int list_interfaces(struct ifaddrs **list)
{
	if (getifaddrs(list) == 0)
		return 0;
	mmc_error_set("cannot list the network interfaces: %s",
		      strerror(errno));
	return -MMC_ENODEV;
}

int mmc_udp_interfaces(struct mmc_interface *found, uint32_t nmax,
		       uint32_t *nfound)
{
	uint32_t count = 0;
	struct ifaddrs *list;
	int rv = list_interfaces(&list);

	if (rv < 0)
		return rv;
	for (const struct ifaddrs *entry = list; entry != NULL && count < nmax;
	     entry = entry->ifa_next)
		if (is_usable(entry) && !(entry->ifa_flags & IFF_LOOPBACK) &&
		    describe(entry, &found[count]) == 0)
			count++;
	freeifaddrs(list);
	*nfound = count;
	return 0;
}

int mmc_udp_interface(const char *devices, int same_host,
		      struct mmc_interface *found)
{
	const struct ifaddrs *entry;
	struct ifaddrs *list;
	int rv = list_interfaces(&list);

	if (rv < 0)
		return rv;
	devices += strspn(devices, ", ");
	entry = *devices != '\0' ? find_any(list, devices)
				 : find_first(list, same_host != 0);
	if (entry == NULL) {
		explain(list, devices, same_host);
		rv = -MMC_ENODEV;
	} else {
		rv = describe(entry, found);
	}
	freeifaddrs(list);
	return rv;
}

/* Writes the address that datagrams to `peer` leave from, as text, or "". */
static void query_route(const struct sockaddr_in *peer, char *text,
			socklen_t size)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	socklen_t own_size = sizeof(own);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*text = '\0';
	if (fd < 0)
		return;
	/* Connecting sends nothing: it looks up the route, whatever the port. */
	if (connect(fd, (const struct sockaddr *)peer, sizeof(*peer)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&own, &own_size) == 0)
		inet_ntop(AF_INET, &own.sin_addr, text, size);
	close(fd);
}

int mmc_udp_route(uint32_t peer_address, struct mmc_interface *found)
{
	struct sockaddr_in peer = mmc_udp_socket_address(peer_address, 1);
	char own[INET_ADDRSTRLEN], text[INET_ADDRSTRLEN];
	const struct ifaddrs *entry;
	struct ifaddrs *list;
	int rv = list_interfaces(&list);

	if (rv < 0)
		return rv;
	query_route(&peer, own, sizeof(own));
	entry = *own != '\0' ? find_named(list, own) : NULL;
	if (entry != NULL) {
		rv = describe(entry, found);
	} else {
		mmc_error_set(
			"no interface that is up with multicast leads to %s",
			inet_ntop(AF_INET, &peer.sin_addr, text, sizeof(text)));
		rv = -MMC_ENODEV;
	}
	freeifaddrs(list);
	return rv;
}
