/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the ports of a host, and opens devices. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <mpimcast/mmc.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/wire/header.h"
#include "drivers/verbs/address.h"
#include "drivers/verbs/device.h"
#include "support/bits.h"
#include "support/error.h"

/* The GID's offset in an IPoIB hardware address: flags and a QPN come first. */
#define IPOIB_GID_OFFSET 4

/* The header that IPoIB puts before each IP packet. */
#define IPOIB_HEADER_BYTES 4

/* ---- one port ------------------------------------------------------------ */

static uint32_t ipv4_of(const struct ifaddrs *entry)
{
	struct sockaddr_in in;

	memcpy(&in, entry->ifa_addr, sizeof(in));
	return ntohl(in.sin_addr.s_addr);
}

/* Writes the first IPv4 address of `device->interface`, if it has one. */
static void find_address(const struct ifaddrs *list, struct mmc_device *device)
{
	for (; list != NULL && device->address == 0; list = list->ifa_next)
		if (list->ifa_addr != NULL &&
		    list->ifa_addr->sa_family == AF_INET &&
		    strcmp(list->ifa_name, device->interface) == 0)
			device->address = ipv4_of(list);
}

/* Returns whether a network interface is that of IPoIB on the port with this GID. */
static bool is_ipoib(const struct ifaddrs *entry, const uint8_t *gid)
{
	const uint8_t *hardware;
	struct sockaddr_ll link;

	if (entry->ifa_addr == NULL || entry->ifa_addr->sa_family != AF_PACKET)
		return false;
	memcpy(&link, entry->ifa_addr, sizeof(link));
	if (link.sll_hatype != ARPHRD_INFINIBAND ||
	    link.sll_halen != IPOIB_GID_OFFSET + MMC_VERBS_GID_BYTES)
		return false;
	/* The address is longer than sll_addr, but getifaddrs() gives all of it. */
	hardware = (const uint8_t *)entry->ifa_addr +
		   offsetof(struct sockaddr_ll, sll_addr);
	return memcmp(hardware + IPOIB_GID_OFFSET, gid, MMC_VERBS_GID_BYTES) ==
	       0;
}

/* Writes the network interface of IPoIB on the port, and its address, if it has one. */
static void find_ipoib(struct mmc_device *device)
{
	struct ifaddrs *list;

	if (getifaddrs(&list) != 0)
		return;
	for (const struct ifaddrs *entry = list; entry != NULL;
	     entry = entry->ifa_next) {
		if (!is_ipoib(entry, device->gid))
			continue;
		snprintf(device->interface, sizeof(device->interface), "%s",
			 entry->ifa_name);
		find_address(list, device);
		break;
	}
	freeifaddrs(list);
}

/*
 * Writes the first GID by which the port can be addressed, if there is one, and the
 * network interface that belongs to it.
 */
static void find_gid(struct ibv_context *context, int ngids,
		     struct mmc_device *device)
{
	struct ibv_gid_entry entry;

	for (int i = 0; i < ngids; i++) {
		if (mmc_ibv.query_gid_ex(context, device->port, (uint32_t)i,
					 &entry, 0, sizeof(entry)) != 0)
			continue;
		if (device->ethernet &&
		    (entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		     mmc_verbs_gid_ipv4(entry.gid.raw) == 0))
			continue;
		memcpy(device->gid, entry.gid.raw, sizeof(device->gid));
		device->gid_index = (uint32_t)i;
		if (!device->ethernet) {
			find_ipoib(device);
			return;
		}
		device->address = mmc_verbs_gid_ipv4(device->gid);
		if (if_indextoname(entry.ndev_ifindex, device->interface) ==
		    NULL)
			device->interface[0] = '\0';
		return;
	}
}

/* Writes what is known of a port. */
static void describe(struct ibv_context *context, uint8_t port,
		     struct mmc_device *device)
{
	struct ibv_port_attr attributes = { .state = IBV_PORT_NOP };

	device->port = port;
	if (mmc_ibv.query_port(context, port, (void *)&attributes) != 0)
		return;
	device->ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
	device->state = attributes.state;
	device->mtu_bytes = mmc_verbs_mtu_bytes(attributes.active_mtu);
	device->lid = attributes.lid;
	find_gid(context, attributes.gid_tbl_len, device);
}

/* ---- all of them --------------------------------------------------------- */

struct found {
	struct mmc_device *devices;
	uint32_t nmax;	/* how many there is room for */
	uint32_t count; /* how many there are, even if there is no room */
};

static void add(struct found *found, const struct mmc_device *device)
{
	if (found->count < found->nmax)
		found->devices[found->count] = *device;
	found->count++;
}

/* Adds all ports of a device; if it cannot be opened, adds a port 0 for it. */
static void add_ports(struct found *found, struct ibv_device *device)
{
	struct ibv_context *context = mmc_ibv.open_device(device);
	struct ibv_device_attr attributes = { .phys_port_cnt = 0 };
	struct mmc_device all = { .port = 0 };

	snprintf(all.name, sizeof(all.name), "%s",
		 mmc_ibv.get_device_name(device));
	if (context == NULL ||
	    mmc_ibv.query_device(context, &attributes) != 0) {
		add(found, &all);
	} else {
		all.groups_max = (uint32_t)attributes.max_mcast_grp;
		all.group_members_max =
			(uint32_t)attributes.max_mcast_qp_attach;
	}
	for (uint8_t port = 1; port <= attributes.phys_port_cnt; port++) {
		struct mmc_device one = all;

		describe(context, port, &one);
		add(found, &one);
	}
	if (context != NULL)
		mmc_ibv.close_device(context);
}

int mmc_verbs_list(struct mmc_device *devices, uint32_t nmax, uint32_t *nfound)
{
	struct found found = { .devices = devices, .nmax = nmax };
	struct ibv_device **list;
	int count;
	int rv = mmc_verbs_load();

	if (rv < 0)
		return rv;
	list = mmc_ibv.get_device_list(&count);
	if (list == NULL || count == 0) {
		mmc_error_set("no RDMA device was found: %s",
			      list == NULL ? strerror(errno)
					   : "libibverbs lists none");
		if (list != NULL)
			mmc_ibv.free_device_list(list);
		return -MMC_ENODEV;
	}
	for (int i = 0; i < count; i++)
		add_ports(&found, list[i]);
	mmc_ibv.free_device_list(list);
	*nfound = found.count;
	return 0;
}

/*
 * Sets the error's text: why a device cannot be opened. The errno that libibverbs
 * leaves is misleading, so this function tries to open the device's file.
 */
static void explain_closed(const struct ibv_device *device, int error)
{
	char path[sizeof(device->dev_name) + sizeof("/dev/infiniband/")];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", device->dev_name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		error = errno;
	else
		close(fd);
	mmc_error_set("%s cannot be opened: %s: %s", device->name, path,
		      strerror(error));
}

struct ibv_context *mmc_verbs_open_device(const char *name)
{
	struct ibv_context *context = NULL;
	int count;
	struct ibv_device **list = mmc_ibv.get_device_list(&count);

	mmc_error_set("there is no RDMA device named %s", name);
	for (int i = 0; list != NULL && i < count && context == NULL; i++) {
		if (strcmp(mmc_ibv.get_device_name(list[i]), name) != 0)
			continue;
		context = mmc_ibv.open_device(list[i]);
		if (context == NULL)
			explain_closed(list[i], errno);
	}
	if (list != NULL)
		mmc_ibv.free_device_list(list);
	return context;
}

/* ---- chunks -------------------------------------------------------------- */

/*
 * Returns the MTU of a group on InfiniBand: that of IPoIB's broadcast group, which may
 * be less than the port's. In IPoIB's connected mode, where the MTU of the interface is
 * larger, returns the port's.
 */
static uint32_t group_mtu_bytes(const struct mmc_device *device)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_mtu = 0 };
	int rv;

	if (fd < 0)
		return device->mtu_bytes;
	memcpy(request.ifr_name, device->interface,
	       strnlen(device->interface, sizeof(request.ifr_name) - 1));
	rv = ioctl(fd, SIOCGIFMTU, &request);
	close(fd);
	if (rv != 0 || request.ifr_mtu <= 0)
		return device->mtu_bytes;
	return mmc_min_u32(device->mtu_bytes,
			   (uint32_t)request.ifr_mtu + IPOIB_HEADER_BYTES);
}

uint32_t mmc_verbs_chunk_bytes(const struct mmc_device *device,
			       uint32_t checksum)
{
	uint32_t mtu_bytes = device->ethernet ? device->mtu_bytes
					      : group_mtu_bytes(device);
	uint32_t head_bytes = mmc_verbs_head_bytes((enum mmc_checksum)checksum);

	return mtu_bytes > head_bytes ? mtu_bytes - head_bytes : 0;
}
