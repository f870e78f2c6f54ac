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

/*
 * The longest address, which is what a rank tells the others of itself: opaque
 * bytes, as many from every rank.
 */
#define MMC_ADDRESS_BYTES_MAX 1024

/*
 * Descriptors that an endpoint may want watched. A driver with many has one
 * that stands for them, such as epoll's.
 */
#define MMC_ENDPOINT_FDS_MAX 4

/* The most pieces of one `read`. */
#define MMC_PIECES_MAX 4

/* In place of a rank: the datagram came from nobody in the set. */
#define MMC_PEER_UNKNOWN (UINT32_MAX - 1)

/* So many ranks at most probe at a time; what they send fits every receive queue. */
#define MMC_PROBE_RANKS 64

enum mmc_event_kind {
	MMC_EVENT_DATAGRAM, /* one has come */
	MMC_EVENT_PLACED,   /* a `place` has completed */
	MMC_EVENT_READ,	    /* a `read` has */
	MMC_EVENT_BROKEN,   /* nothing reaches or leaves a peer any more */
	MMC_EVENT_ALIVE,    /* the process of `source` exists: see `inquire` */
	MMC_EVENT_GONE,	    /* it has ended */
};

struct mmc_event {
	enum mmc_event_kind kind;
	/*
	 * The datagram, valid until the next poll of the endpoint: its header
	 * and trailer at `bytes`, its payload behind them or, if that is not
	 * NULL, at `body`, `nbytes` in all; and the rank whose address it came
	 * from. Nothing about its content has been checked.
	 *
	 * Of a read: what was read at `body`, `nbytes`, as long valid; 0 bytes
	 * if it has failed.
	 */
	const uint8_t *bytes;
	const uint8_t *body;
	uint32_t nbytes;
	uint32_t source; /* also whom a broken connection led to */
	int error;	 /* of a broken one, mmc_error_set() having told more */
	uint64_t cookie; /* of the completed `place` or `read` */
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

/* Memory of this rank that others may read, as they have to be told. */
struct mmc_region {
	uint64_t address;
	uint32_t key;
	void *handle; /* the driver's */
};

/* A part of another rank's region. */
struct mmc_piece {
	uint64_t address;
	uint32_t key;
	uint32_t nbytes;
};

struct mmc_cover;

struct mmc_endpoint {
	const struct mmc_driver *driver;
	uint32_t address_bytes;
	uint32_t read_bytes_max; /* of one `read`; 0: memory cannot be read */
	/*
	 * Each source has a receive buffer of its own, an equal part of all.
	 * That is so on all ranks, or on none.
	 */
	bool apart;
	bool reliable; /* a live partner of a barrier gets all control, as a rule */
	/*
	 * Chunks worth a call of send(), MMC_BATCH_CHUNKS_WIDE at most; 0: as
	 * many as usual.
	 */
	uint32_t batch_chunks;
	/* How long a peer may be silent at least, as the engine says. */
	uint64_t timeout_ns;
	uint64_t evacuated;  /* datagrams that came to the place of another */
	uint64_t reconnects; /* connections that were made anew */
	uint64_t rejoins;    /* groups that were joined again */
};

struct mmc_driver {
	const char *name;

	/* The clock that the endpoint lives by; starts anywhere, never falls. */
	uint64_t (*now_ns)(struct mmc_endpoint *endpoint);

	/* Writes this rank's address, `address_bytes` long, for the others. */
	void (*address)(struct mmc_endpoint *endpoint, uint8_t *address);

	/*
	 * Takes the addresses of all ranks, `address_bytes` each in rank
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
	 * Begins to predict which chunks come, whose receives then bring their
	 * payload right to its place: an event's `body` is there. `place` keeps
	 * what comes another way back while its place is the target of a posted
	 * receive. Returns 0 or a negative error. NULL, and so `uncover`, where
	 * that is never possible.
	 */
	int (*cover)(struct mmc_endpoint *endpoint,
		     const struct mmc_cover *plan);

	/*
	 * Ends that: no place is the target of a receive any more on return.
	 * With `forget` no event tells of placements kept back. Returns 0, or a
	 * negative error if the device does not comply: it may write there
	 * until the endpoint closes, which has failed.
	 */
	int (*uncover)(struct mmc_endpoint *endpoint, bool forget);

	/*
	 * Lets the other ranks read `nbytes` at `memory`, and nothing more,
	 * until `deregister_memory`. Returns 0 with `region` written, or a negative
	 * error. All three are NULL where read_bytes_max is 0.
	 */
	int (*register_memory)(struct mmc_endpoint *endpoint,
			       const void *memory, size_t nbytes,
			       struct mmc_region *region);

	/*
	 * Ends that. A read that is still under way then breaks its reader's
	 * connection: a region outlives the reads it was registered for.
	 */
	void (*deregister_memory)(struct mmc_endpoint *endpoint,
				  struct mmc_region *region);

	/*
	 * Reads `npieces` of regions of `peer`, each after the one before it has
	 * been read, read_bytes_max in all at most. Returns 0 when an event
	 * with `cookie` will tell, -MMC_EAGAIN while as many reads are under
	 * way as may be, or -MMC_ENODEV if that peer's memory cannot be read.
	 */
	int (*read)(struct mmc_endpoint *endpoint, uint32_t peer,
		    const struct mmc_piece *pieces, unsigned npieces,
		    uint64_t cookie);

	/*
	 * Asks for the process of `peer`, which gives no answer itself: not the
	 * process but its kernel, or its network adapter, says whether it
	 * exists. MMC_EVENT_ALIVE or MMC_EVENT_GONE may follow; nothing does if
	 * that machine is silent, too. To be called again and again while the
	 * peer is silent, tens of milliseconds apart at least. NULL where a
	 * transport has no such means.
	 */
	void (*inquire)(struct mmc_endpoint *endpoint, uint32_t peer);

	/*
	 * Writes the descriptors that become readable when there is something
	 * to poll, those that carry control traffic first, and how many of them
	 * do to `*ncontrol`. Returns their number, 0 for an endpoint that is
	 * stepped from outside.
	 */
	unsigned (*fds)(struct mmc_endpoint *endpoint, int *fds,
			unsigned *ncontrol);

	/*
	 * Has to be called before the descriptors are slept on, where it is not
	 * NULL: it lets them become readable with the next event. Returns
	 * whether there may be one already.
	 */
	bool (*arm)(struct mmc_endpoint *endpoint);

	/*
	 * When the endpoint itself will have something to poll although no
	 * descriptor says so (a delayed datagram, say). NULL: never.
	 */
	uint64_t (*deadline_ns)(struct mmc_endpoint *endpoint);

	/* Leaves the groups and frees the endpoint. */
	void (*close)(struct mmc_endpoint *endpoint);
};

#endif
