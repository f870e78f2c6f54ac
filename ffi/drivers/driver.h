/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the engine and a transport, which moves datagrams among the
 * ranks of one set of processes and does nothing more. A driver knows addresses,
 * sockets and subgroups; it knows nothing of chunks, bitmaps or repair.
 *
 * An endpoint belongs to one rank of one set. One thread at a time polls it; while it
 * does, another thread may read only `fds`.
 */
#ifndef MMC_DRIVERS_DRIVER_H
#define MMC_DRIVERS_DRIVER_H

#include "core/types.h"

/*
 * The longest address. An address is what a rank tells the others about itself: opaque
 * bytes, the same number from every rank.
 */
#define MMC_ADDRESS_BYTES_MAX 1024

/*
 * The most descriptors that an endpoint may want watched. A driver with more of them
 * puts one in their place, such as epoll's.
 */
#define MMC_ENDPOINT_FDS_MAX 4

/* The most datagrams that an endpoint may ask for in a call of send(). */
#define MMC_BATCH_DATAGRAMS_MAX 64

/* The most pieces that one `read` takes. */
#define MMC_PIECES_MAX 4

/* Stands in place of a rank: the datagram came from outside the set. */
#define MMC_PEER_UNKNOWN (UINT32_MAX - 1)

/* The most ranks that probe at a time; what they send fits every receive queue. */
#define MMC_PROBE_RANKS 64

enum mmc_event_kind {
	MMC_EVENT_DATAGRAM, /* a datagram arrived */
	MMC_EVENT_PLACED,   /* a `place` has completed */
	MMC_EVENT_READ,	    /* a `read` has completed */
	MMC_EVENT_BROKEN,   /* nothing reaches or leaves the peer any more */
	MMC_EVENT_ALIVE,    /* the process of `source` exists: see `inquire` */
	MMC_EVENT_GONE, /* the process of `source` has ended: see `inquire` */
};

struct mmc_event {
	enum mmc_event_kind kind;
	/*
	 * For a datagram: its header and trailer are at `bytes`; its payload follows
	 * them or, if `body` is not NULL, is at `body`; `nbytes` counts both. `source`
	 * is the rank whose address it came from. The memory is valid until the next
	 * poll of the endpoint. Nothing about the content has been checked.
	 *
	 * For a read: `nbytes` that were read are at `body`, valid until the next poll;
	 * 0 bytes if the read has failed.
	 */
	const uint8_t *bytes;
	const uint8_t *body;
	uint32_t nbytes;
	/*
	 * For MMC_EVENT_BROKEN: the peer, or MMC_PEER_ALL if this rank's own device is
	 * at fault.
	 */
	uint32_t source;
	int error;	 /* for MMC_EVENT_BROKEN; details: mmc_error_set() */
	uint64_t cookie; /* given to the completed `place` or `read` */
};

/* One datagram to send. The driver gathers `head` and `body`. */
struct mmc_parcel {
	const uint8_t *head;
	uint32_t head_bytes;
	const uint8_t *body; /* may be NULL if body_bytes is 0 */
	uint32_t body_bytes;
	uint32_t peer; /* a rank, or MMC_PEER_ALL for multicast */
	/*
	 * The subgroup that carries a multicast, below the number agreed at open. A
	 * unicast goes to the peer's control address if `control`, else to the address
	 * that takes its data.
	 */
	uint32_t subgroup;
	bool control;
};

/* Memory of this rank that others may read once they know its address and key. */
struct mmc_region {
	uint64_t address;
	uint32_t key;
	void *handle; /* the driver's own */
};

/* A part of another rank's region. */
struct mmc_piece {
	uint64_t address;
	uint32_t key;
	uint32_t nbytes;
};

struct mmc_predictor; /* see predictor.h */

struct mmc_endpoint {
	const struct mmc_driver *driver;
	uint32_t address_bytes;
	uint32_t read_bytes_max; /* of one `read`; 0: memory cannot be read */
	/*
	 * Each source has a receive buffer of its own, an equal part of the whole.
	 * Either all ranks have this, or none.
	 */
	bool apart;
	/* As a rule no control message to a live partner of a barrier is lost. */
	bool reliable;
	/*
	 * The number of datagrams that makes a call of send() worthwhile, at most
	 * MMC_BATCH_DATAGRAMS_MAX; 0: the usual number.
	 */
	uint32_t batch_datagrams;
	/* The least time that a peer may be silent, set by the engine. */
	uint64_t timeout_ns;
	/* Payloads that arrived in another's place: see begin_placement. */
	uint64_t evacuated;
	uint64_t reconnects; /* connections that were made again */
	uint64_t rejoins;    /* groups that were joined again */
};

struct mmc_driver {
	const char *name;

	/*
	 * The clock that the endpoint goes by. It starts anywhere and never goes back.
	 */
	uint64_t (*now_ns)(struct mmc_endpoint *endpoint);

	/* Writes this rank's address, `address_bytes` long, for the other ranks. */
	void (*address)(struct mmc_endpoint *endpoint, uint8_t *address);

	/*
	 * Takes the addresses of all ranks, `address_bytes` each in rank order, and
	 * joins the groups. Returns 0 or a negative error.
	 */
	int (*connect)(struct mmc_endpoint *endpoint, const uint8_t *addresses);

	/*
	 * Fetches up to `nmax` events that are there now, without waiting. Returns
	 * their number or a negative error.
	 */
	int (*poll)(struct mmc_endpoint *endpoint, struct mmc_event *events,
		    unsigned nmax);

	/*
	 * Sends all `nparcels`, waiting for room in local queues if it must. Loss in
	 * the network is not an error. The memory is the caller's again on return.
	 * Returns 0 or a negative error.
	 */
	int (*send)(struct mmc_endpoint *endpoint,
		    const struct mmc_parcel *parcels, unsigned nparcels);

	/*
	 * Copies a payload to its place. Returns 0 when that is done, or -MMC_EAGAIN
	 * when an event with `cookie` will tell; `from` then need not outlive the call,
	 * but `to` is written until that event. NULL: the engine copies.
	 */
	int (*place)(struct mmc_endpoint *endpoint, void *to, const void *from,
		     size_t nbytes, uint64_t cookie);

	/*
	 * Begins direct placement: receives are posted so that the device puts a
	 * payload that `predictor` has predicted right in its place, where the `body`
	 * of the event then is. While a posted receive aims at a place, `place` holds
	 * back a payload for it that arrived another way. Returns 0 or a negative
	 * error. `begin_placement` and `end_placement` are NULL where that is never
	 * possible.
	 */
	int (*begin_placement)(struct mmc_endpoint *endpoint,
			       const struct mmc_predictor *predictor);

	/*
	 * Ends direct placement: on return no posted receive aims at a place any more.
	 * With `forget` no event tells of payloads held back. Returns 0, or a negative
	 * error if the device does not comply: it may then write to places until the
	 * endpoint closes, and the endpoint has failed.
	 */
	int (*end_placement)(struct mmc_endpoint *endpoint, bool forget);

	/*
	 * Lets the other ranks read `nbytes` at `memory`, and nothing more, until
	 * `deregister_memory`. Returns 0 with `region` written, or a negative error.
	 * `register_memory`, `deregister_memory` and `read` are NULL where
	 * read_bytes_max is 0.
	 */
	int (*register_memory)(struct mmc_endpoint *endpoint,
			       const void *memory, size_t nbytes,
			       struct mmc_region *region);

	/*
	 * Ends the others' right to read `region`. A read that is still under way then
	 * breaks its reader's connection: a region must outlive the reads it was
	 * registered for.
	 */
	void (*deregister_memory)(struct mmc_endpoint *endpoint,
				  struct mmc_region *region);

	/*
	 * Reads `npieces` from regions of `peer`, read_bytes_max in all at most. Each
	 * piece is read only after the piece before it. Returns 0 when an event with
	 * `cookie` will tell, -MMC_EAGAIN while as many reads are under way as may be,
	 * or -MMC_ENODEV if that peer's memory cannot be read.
	 */
	int (*read)(struct mmc_endpoint *endpoint, uint32_t peer,
		    const struct mmc_piece *pieces, unsigned npieces,
		    uint64_t cookie);

	/*
	 * Asks whether the process of `peer` exists. The process itself does not
	 * answer; its kernel or its network adapter does. MMC_EVENT_ALIVE or
	 * MMC_EVENT_GONE may follow; neither does if that machine is silent, too. Is
	 * called repeatedly while the peer is silent, at least tens of milliseconds
	 * apart. NULL where a transport has no such means.
	 */
	void (*inquire)(struct mmc_endpoint *endpoint, uint32_t peer);

	/*
	 * Writes the descriptors that become readable when there is something to poll,
	 * those that carry control traffic first, and how many of them do to
	 * `*ncontrol`. Returns their number, 0 for an endpoint that is stepped from
	 * outside.
	 */
	unsigned (*fds)(struct mmc_endpoint *endpoint, int *fds,
			unsigned *ncontrol);

	/*
	 * Must be called before sleeping on the descriptors, where it is not NULL: it
	 * lets them become readable with the next event. Returns whether there may be
	 * an event already.
	 */
	bool (*arm)(struct mmc_endpoint *endpoint);

	/*
	 * The time when the endpoint itself will have something to poll although no
	 * descriptor says so (a delayed datagram, for example). NULL: never.
	 */
	uint64_t (*deadline_ns)(struct mmc_endpoint *endpoint);

	/* Leaves the groups and frees the endpoint. */
	void (*close)(struct mmc_endpoint *endpoint);
};

#endif
