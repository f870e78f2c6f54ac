/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a transport does for the engine, and nothing more: move datagrams among
 * the ranks of one set of processes. A driver knows addresses, sockets and
 * subgroups; it knows nothing of chunks, bitmaps or repair.
 *
 * An endpoint belongs to one rank of one set. It is polled by one thread at a
 * time; only `fds` may be read while another thread polls.
 */
#ifndef MMC_DRIVERS_DRIVER_H
#define MMC_DRIVERS_DRIVER_H

#include "core/types.h"

/* What a rank tells the others of itself: an opaque, fixed-size address. */
#define MMC_ADDRESS_BYTES 64

/*
 * Descriptors that an endpoint may want watched. A driver with many has one
 * that stands for them, such as epoll's.
 */
#define MMC_ENDPOINT_FDS_MAX 4

/* In place of a rank: the datagram came from nobody in the set. */
#define MMC_PEER_UNKNOWN (UINT32_MAX - 1)

enum mmc_event_kind {
	MMC_EVENT_DATAGRAM, /* one has come */
	MMC_EVENT_PLACED,   /* a `place` has completed */
};

struct mmc_event {
	enum mmc_event_kind kind;
	/*
	 * The datagram, header and trailer included, valid until the next poll
	 * of the endpoint, and the rank whose address it came from. Nothing
	 * about its content has been checked.
	 */
	const uint8_t *bytes;
	uint32_t nbytes;
	uint32_t source;
	uint64_t cookie; /* of the completed `place` */
};

/* One datagram to send: the driver gathers `head` and `body`. */
struct mmc_parcel {
	const uint8_t *head;
	uint32_t head_bytes;
	const uint8_t *body; /* may be NULL if body_bytes is 0 */
	uint32_t body_bytes;
	uint32_t peer; /* a rank, or MMC_PEER_ALL for multicast */
	/*
	 * For multicast: which subgroup carries it, below the number agreed at
	 * open. Unicast goes to the peer's control address if `control`, else
	 * to the address that takes its data.
	 */
	uint32_t subgroup;
	bool control;
};

struct mmc_endpoint {
	const struct mmc_driver *driver;
};

struct mmc_driver {
	const char *name;

	/* The clock that the endpoint lives by; starts anywhere, never falls. */
	uint64_t (*now_ns)(struct mmc_endpoint *endpoint);

	/* Writes this rank's address, MMC_ADDRESS_BYTES, for the others. */
	void (*address)(struct mmc_endpoint *endpoint, uint8_t *address);

	/*
	 * Takes the addresses of all ranks, MMC_ADDRESS_BYTES each in rank
	 * order, and joins the groups. Returns 0 or a negative error.
	 */
	int (*connect)(struct mmc_endpoint *endpoint, const uint8_t *addresses);

	/*
	 * Fetches up to `nmax` events that are there now, without waiting.
	 * Returns their number or a negative error.
	 */
	int (*poll)(struct mmc_endpoint *endpoint, struct mmc_event *events,
		    unsigned nmax);

	/*
	 * Sends all `nparcels`, waiting for room in local queues if it must;
	 * what the network loses is nobody's error. The memory is the caller's
	 * again on return. Returns 0 or a negative error.
	 */
	int (*send)(struct mmc_endpoint *endpoint,
		    const struct mmc_parcel *parcels, unsigned nparcels);

	/*
	 * Copies a payload to its place. Returns 0 when that is done, or
	 * -MMC_EAGAIN when an event with `cookie` will tell; `from` then need
	 * not outlive the call, but `to` is written until that event. NULL: the
	 * engine copies.
	 */
	int (*place)(struct mmc_endpoint *endpoint, void *to, const void *from,
		     size_t nbytes, uint64_t cookie);

	/*
	 * Writes the descriptors that become readable when there is something
	 * to poll, those that carry control traffic first, and how many of them
	 * do to `*ncontrol`. Returns their number, 0 for an endpoint that is
	 * stepped from outside.
	 */
	unsigned (*fds)(struct mmc_endpoint *endpoint, int *fds,
			unsigned *ncontrol);

	/*
	 * When the endpoint itself will have something to poll although no
	 * descriptor says so (a delayed datagram, say). NULL: never.
	 */
	uint64_t (*deadline_ns)(struct mmc_endpoint *endpoint);

	/* Leaves the groups and frees the endpoint. */
	void (*close)(struct mmc_endpoint *endpoint);
};

#endif
