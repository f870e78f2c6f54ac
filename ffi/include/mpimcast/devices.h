/* SPDX-License-Identifier: BSD-3-Clause */
/* The network interfaces and RDMA devices that a team can use. */
#ifndef MPIMCAST_DEVICES_H
#define MPIMCAST_DEVICES_H

#include <stdint.h>

#define MMC_NAME_SIZE 64 /* bytes of a device's name, with the final 0 */

/* A network interface and one of its IPv4 addresses. */
struct mmc_interface {
	char name[MMC_NAME_SIZE];
	uint32_t address; /* IPv4, host order */
	uint32_t netmask; /* IPv4, host order */
	uint32_t mtu_bytes;
	int loopback; /* whether it is the loopback interface */
};

/*
 * Writes to `found` the interfaces that are up, can multicast, have an IPv4 address and
 * are not loopback, but no more than `nmax` of them, and writes how many to `*nfound`.
 * Returns 0, or -MMC_ENODEV with the reason in mmc_last_error().
 */
int mmc_udp_interfaces(struct mmc_interface *found, uint32_t nmax,
		       uint32_t *nfound);

/*
 * Chooses the interface for multicast, and writes it to `found`. `devices` is a
 * comma-separated list of interface names or IPv4 addresses, of which the first that is
 * up is chosen. If the list is empty, the loopback interface is chosen with
 * `same_host`, and otherwise the first interface that is up, can multicast and is not
 * loopback. Returns 0, or -MMC_ENODEV with the reason in mmc_last_error().
 */
int mmc_udp_interface(const char *devices, int same_host,
		      struct mmc_interface *found);

/*
 * Writes to `found` the interface, and its address, from which datagrams to
 * `peer_address` (IPv4, host order) would leave; none is sent. For an address of this
 * host that is the interface which has the address. Returns 0, or -MMC_ENODEV with the
 * reason in mmc_last_error() if there is no route, or only one through an interface
 * that is down or cannot multicast.
 */
int mmc_udp_route(uint32_t peer_address, struct mmc_interface *found);

/*
 * Returns the largest chunk, in bytes, that a datagram on `interface` carries with
 * `checksum` (0 off, 1 header, 2 full); 0 if not even one byte fits.
 */
uint32_t mmc_udp_chunk_bytes(const struct mmc_interface *interface,
			     uint32_t checksum);

/* A port of an RDMA device. */
struct mmc_device {
	char name[MMC_NAME_SIZE]; /* of the device, such as mlx5_0 */
	uint32_t port;	    /* the number of the port on the device, from 1 */
	uint32_t ethernet;  /* 1: RoCE; 0: InfiniBand */
	uint32_t state;	    /* enum ibv_port_state; 4: active */
	uint32_t mtu_bytes; /* active MTU: payload of a packet */
	/*
	 * On RoCE the GID that holds the IPv4 address of a network interface, on
	 * InfiniBand the port's first GID.
	 */
	uint8_t gid[16];
	uint32_t gid_index; /* where the port's table of GIDs has `gid` */
	uint32_t lid;	    /* the port's local identifier on InfiniBand */
	/* The network interface with `address`; "" if there is none. */
	char interface[MMC_NAME_SIZE];
	uint32_t address;    /* IPv4, host order */
	uint32_t groups_max; /* multicast groups that the device supports */
	uint32_t group_members_max; /* queue pairs in each group */
};

/*
 * Writes to `found` the ports of all RDMA devices, usable or not, but no more than
 * `nmax` of them, and writes how many exist to `*nfound`. Returns 0, or -MMC_ENODEV
 * with the reason in mmc_last_error() if libibverbs or librdmacm is missing or finds no
 * device.
 */
int mmc_verbs_list(struct mmc_device *found, uint32_t nmax, uint32_t *nfound);

/*
 * Chooses the port for this rank, which is number `local_rank` among the ranks of its
 * host, and writes it to `found`. `devices` is a comma-separated list of "device" or
 * "device:port", or empty for all; the ranks of a host are spread over the usable
 * ports. Returns 0, or -MMC_ENODEV with the reason in mmc_last_error() if no port is
 * active, has a suitable GID, and can be opened by this process.
 */
int mmc_verbs_device(const char *devices, uint32_t local_rank,
		     struct mmc_device *found);

/*
 * Returns the largest chunk, in bytes, that a packet on `device` carries with
 * `checksum` (0 off, 1 header, 2 full); 0 if not even one byte fits.
 */
uint32_t mmc_verbs_chunk_bytes(const struct mmc_device *device,
			       uint32_t checksum);

#endif
