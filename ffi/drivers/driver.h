/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the engine and a transport. A driver moves datagrams among the
 * ranks of one team and does nothing more: it knows addresses, sockets and subgroups,
 * but no chunks, bitmaps or repairs.
 *
 * An endpoint is one rank's end of the transport in one team. One thread at a time
 * calls the driver's functions for an endpoint. Only `fds` may be called by another
 * thread at the same time.
 */
#ifndef MMC_DRIVERS_DRIVER_H
#define MMC_DRIVERS_DRIVER_H

#include <mpimcast/counters.h>

#include "core/types.h"

/*
 * The length of the longest address. An address is what a rank tells the others about
 * itself: opaque bytes, the same number from every rank.
 */
#define MMC_ADDRESS_BYTES_MAX 1024

/*
 * The most descriptors that `fds` writes. A driver that has more of them writes one
 * that stands for several, such as epoll's.
 */
#define MMC_ENDPOINT_FDS_MAX 4

/* The largest value of an endpoint's `batch_datagrams`. */
#define MMC_BATCH_DATAGRAMS_MAX 64

/* The most channels that `guard` takes. */
#define MMC_GUARD_CHANNELS_MAX 32

/* The most stretches of memory that one `read` takes. */
#define MMC_STRETCHES_MAX 4

/* The source of a datagram that no rank of the team has sent. */
#define MMC_PEER_UNKNOWN (UINT32_MAX - 1)

/*
 * The most ranks that send probes at the same time. Receive queues have room for all
 * that these send.
 */
#define MMC_PROBE_RANKS 64

enum mmc_event_kind {
	MMC_EVENT_DATAGRAM, /* a datagram arrived */
	MMC_EVENT_REFUSED, /* a datagram of `nbytes` was dropped, for `refusal` */
	MMC_EVENT_ARRIVED, /* the device has put chunks in their places by itself */
	MMC_EVENT_PLACED, /* payloads that were given to `place` are there */
	MMC_EVENT_READ,	  /* a `read` has completed */
	MMC_EVENT_BROKEN, /* nothing passes to or from `source` any more */
	MMC_EVENT_ALIVE,  /* `inquire`: the process of `source` exists */
	MMC_EVENT_GONE,	  /* `inquire`: the process of `source` has ended */
	MMC_EVENT_ENDED, /* a runner has carried out an operation (drivers/remote) */
	MMC_EVENT_LANDED, /* a runner has shown that more chunks are present */
};

struct mmc_event {
	enum mmc_event_kind kind;
	/*
	 * For a datagram: its header, and its CRC under CHECKSUM=full, are at `bytes`.
	 * Its payload is at `body` or, if that is NULL, follows at `bytes`. `nbytes` is
	 * the length of all of it. Nothing about the content has been checked.
	 *
	 * For a read: the `nbytes` that were read are at `body`; `nbytes` is 0 if the
	 * read has failed.
	 *
	 * For MMC_EVENT_ENDED: `bytes` is a struct mmc_offload_completion.
	 *
	 * For MMC_EVENT_ARRIVED: `nbytes` is the length of the last chunk's payload;
	 * the other chunks are full.
	 *
	 * The memory is valid until the next poll of the endpoint, or for longer: see
	 * `kept_events`.
	 */
	const uint8_t *bytes;
	const uint8_t *body;
	uint32_t nbytes;
	/*
	 * The rank that the event is about. For a datagram it is the rank that sends
	 * from the datagram's source address, or MMC_PEER_UNKNOWN; for MMC_EVENT_BROKEN
	 * it is MMC_PEER_NONE if this rank's own device is at fault.
	 */
	uint32_t source;
	/*
	 * For a datagram whose source is MMC_PEER_UNKNOWN: the IPv4 address and the
	 * port that it came from, in host order; 0 where the transport has none.
	 */
	uint32_t from_ip;
	uint16_t from_port;
	/*
	 * For MMC_EVENT_BROKEN: a negative error; the driver has set its text by
	 * mmc_error_set().
	 */
	int error;
	enum mmc_refusal refusal; /* for MMC_EVENT_REFUSED */
	/*
	 * The argument of the completed `place` or `read`; for a payload that was not the
	 * first of its `place`, as many more. For MMC_EVENT_ARRIVED the
	 * cookie of the predictor that direct placement began with.
	 */
	uint64_t cookie;
	/*
	 * For MMC_EVENT_ARRIVED: the chunks, `count` of them from `first` on. For
	 * MMC_EVENT_PLACED: how many payloads are in their places, whose cookies are `cookie`
	 * and the numbers that follow it; at least 1.
	 */
	uint32_t first;
	uint32_t count;
};

/* Returns what a datagram carries behind `head_bytes` of header and CRC. */
static inline const uint8_t *mmc_event_body(const struct mmc_event *event,
					    uint32_t head_bytes)
{
	return event->body != NULL ? event->body : event->bytes + head_bytes;
}

/* One datagram to send: the bytes of `head`, then those of `body`. */
struct mmc_parcel {
	const uint8_t *head;
	uint32_t head_bytes;
	const uint8_t *body; /* may be NULL if body_bytes is 0 */
	uint32_t body_bytes;
	uint32_t peer;	   /* a rank, or MMC_PEER_ALL for multicast */
	uint32_t subgroup; /* of a multicast; below the number set at open */
	/*
	 * Whether a unicast goes to the address where the peer receives control, rather
	 * than to the one where it receives data.
	 */
	bool control;
};

/* Memory of this rank that is registered with the device. */
struct mmc_region {
	void *handle; /* the driver's own */
};

/* The right of one rank to read memory of this rank, by this address and key. */
struct mmc_grant {
	uint64_t address;
	uint32_t key;
	void *handle; /* the driver's own */
};

/* Consecutive bytes of memory that another rank has granted to this one. */
struct mmc_stretch {
	uint64_t address;
	uint32_t key;
	uint32_t nbytes;
};

struct mmc_predictor; /* see predictor.h */

struct mmc_endpoint {
	const struct mmc_driver *driver;
	uint32_t address_bytes;
	/* The most bytes of one `read`; 0: other ranks' memory cannot be read. */
	uint32_t read_bytes_max;
	/*
	 * Whether the multicasts of each other rank have a receive buffer of their own,
	 * an equal part of all buffer memory. The same on all ranks.
	 */
	bool has_buffer_per_source;
	/*
	 * Whether control messages to a partner in a barrier arrive, as a rule, for as
	 * long as that partner lives.
	 */
	bool control_is_reliable;
	/*
	 * How many datagrams the engine should gather for one call of send(), at most
	 * MMC_BATCH_DATAGRAMS_MAX; 0: as many as the engine sees fit.
	 */
	uint32_t batch_datagrams;
	/*
	 * How many of the longest datagrams of one call of send() may leave as a train:
	 * together, and without pauses. At most MMC_BATCH_DATAGRAMS_MAX; 0: datagrams
	 * leave one by one. Such a transport leaves it to the engine how long trains are.
	 */
	uint32_t train_datagrams;
	/*
	 * The shortest of the streams' times after which a silent peer counts as
	 * failed. The engine sets this; a driver may make a connection again within
	 * this time.
	 */
	uint64_t timeout_ns;
	/*
	 * Whether the last poll() has left datagrams that had arrived, though it had room
	 * for more events.
	 */
	bool lags;
	/*
	 * The memory of an event stays valid until poll() has returned this many other
	 * events, so that the engine may poll several times before it uses them; 0: until
	 * the next poll. For a driver whose poll() returns few events at a time, but is
	 * cheap.
	 */
	uint32_t kept_events;
	/*
	 * Whether the device places a payload by what the datagram says, not by what is
	 * predicted: MMC_EVENT_ARRIVED then tells what has arrived, and direct placement
	 * begins with the operation, before other ranks may send.
	 */
	bool places_by_itself;
	/*
	 * The number of payloads that the device has put in the place of another
	 * payload, so that they had to be copied out of there: see placement.h.
	 */
	uint64_t evacuated;
	/* How many connections were made again; what was granted over them has ended. */
	uint64_t reconnects;
	uint64_t rejoins; /* how many groups were joined again */
	/*
	 * How many system calls have sent datagrams, and how many have received some or
	 * looked for some, whether or not there were any; 0 where there are no such calls.
	 */
	uint64_t tx_calls;
	uint64_t rx_calls;
};

struct mmc_driver {
	const char *name;

	/*
	 * Returns the time by the endpoint's clock, which begins at an arbitrary time
	 * and never goes back.
	 */
	uint64_t (*now_ns)(struct mmc_endpoint *endpoint);

	/* Writes this rank's address for the others: `address_bytes` bytes. */
	void (*address)(struct mmc_endpoint *endpoint, uint8_t *address);

	/*
	 * Takes the addresses of all ranks in rank order, `address_bytes` each, and
	 * joins the multicast groups. Returns 0 or a negative error.
	 */
	int (*connect)(struct mmc_endpoint *endpoint, const uint8_t *addresses);

	/*
	 * Fetches up to `nmax` events that have already happened, without waiting.
	 * Returns their number or a negative error.
	 */
	int (*poll)(struct mmc_endpoint *endpoint, struct mmc_event *events,
		    unsigned nmax);

	/*
	 * Sends all `nparcels`. Waits, if it must, for room in the host's own queues. A
	 * datagram that the network loses is not an error. On return the caller may
	 * change the memory that it has passed. Returns 0 or a negative error.
	 */
	int (*send)(struct mmc_endpoint *endpoint,
		    const struct mmc_parcel *parcels, unsigned nparcels);

	/*
	 * Copies the payloads of a run of `ndatagrams`, each behind `head_bytes`, to `to`, one
	 * behind the other. There is only one where the device may have put some in place.
	 * Returns 0 if all are copied, -MMC_EAGAIN if all will be later, or another negative
	 * error. In the second case MMC_EVENT_PLACED reports the end of each, the first
	 * with `cookie`, and so on: `to` may be written until then, but the datagrams only
	 * have to last until the call returns. NULL: the engine copies.
	 */
	int (*place)(struct mmc_endpoint *endpoint, void *to,
		     const struct mmc_event *datagrams, uint32_t ndatagrams,
		     uint32_t head_bytes, uint64_t cookie);

	/*
	 * Begins direct placement (placement.h): the device puts each payload that
	 * `predictor` has predicted correctly in its place, and the `body` of the event
	 * is that place. While a posted receive aims at a place, `place` holds back a
	 * payload that belongs there but has arrived another way.
	 *
	 * A device that places by itself puts each full or last chunk of this operation that
	 * is sent for the first time in its place within `predictor.memory`, by what the
	 * datagram says and where `predictor.destination` says. An
	 * MMC_EVENT_ARRIVED tells of it; what does not fit comes as a datagram, or is
	 * dropped. It predicts nothing.
	 *
	 * Returns 0 or a negative error. `begin_placement` and `end_placement` are NULL
	 * where direct placement is never possible.
	 */
	int (*begin_placement)(struct mmc_endpoint *endpoint,
			       const struct mmc_predictor *predictor);

	/*
	 * Ends direct placement: on return no posted receive aims at a place any more,
	 * and the payloads that `place` held back are in their places. Events report
	 * these, unless `forget` is set. A device that places by itself places nothing
	 * more, and no MMC_EVENT_ARRIVED of the operation follows. Returns 0, or a negative
	 * error if the device does not obey: it may then write to places until the endpoint
	 * closes, and the endpoint counts as failed.
	 */
	int (*end_placement)(struct mmc_endpoint *endpoint, bool forget);

	/*
	 * Registers `nbytes` at `memory`, for direct placement and for grants. Nobody may
	 * read it by that alone. Returns 0 with `region` written, or a negative error.
	 * Where `read_bytes_max` is 0, the functions for grants and reads below are NULL;
	 * and so are this one and its counterpart, unless the device places by itself.
	 */
	int (*register_memory)(struct mmc_endpoint *endpoint,
			       const void *memory, size_t nbytes,
			       struct mmc_region *region);

	/*
	 * Registers the `nbytes` of the file `fd`, so that another process can have results
	 * arrive there. Returns 0 with `region` written, or a negative error. NULL where
	 * no other process carries out operations.
	 */
	int (*share_memory)(struct mmc_endpoint *endpoint, int fd,
			    size_t nbytes, struct mmc_region *region);

	/* Ends a registration. No grant of the region is in force any more. */
	void (*deregister_memory)(struct mmc_endpoint *endpoint,
				  struct mmc_region *region);

	/*
	 * Lets `peer` read `nbytes` at `memory`, but not write there. `region` is where
	 * that memory is registered, or NULL if it is not. Returns 0 with `grant`
	 * written, or a negative error: -MMC_ENODEV if that peer cannot read, and
	 * -MMC_EAGAIN if it cannot now.
	 */
	int (*grant_read)(struct mmc_endpoint *endpoint, uint32_t peer,
			  const struct mmc_region *region, const void *memory,
			  size_t nbytes, struct mmc_grant *grant);

	/*
	 * Ends a grant: on return nobody can read by its key any more. A read that tries
	 * to fails. Then all reads between the two ranks may fail, and the grants between
	 * them end, since their connection has to be made again.
	 */
	void (*revoke_read)(struct mmc_endpoint *endpoint,
			    struct mmc_grant *grant);

	/*
	 * Reads `nstretches` of what `peer` has granted, at most `read_bytes_max` bytes in
	 * all. Each stretch is read only after the stretch before it. Returns 0 if the read
	 * is under way: MMC_EVENT_READ with `cookie` reports its end. Returns
	 * -MMC_EAGAIN if the most reads possible are under way already, or -MMC_ENODEV
	 * if that peer's memory cannot be read.
	 */
	int (*read)(struct mmc_endpoint *endpoint, uint32_t peer,
		    const struct mmc_stretch *stretches, unsigned nstretches,
		    uint64_t cookie);

	/*
	 * Asks whether the process of `peer` exists. The answer comes from its kernel
	 * or its network adapter, not from the process. MMC_EVENT_ALIVE or
	 * MMC_EVENT_GONE may follow; none does if that machine is silent, too. The
	 * engine calls this repeatedly while the peer is silent, with at least tens of
	 * milliseconds between two calls. NULL where a transport cannot find out.
	 */
	void (*inquire)(struct mmc_endpoint *endpoint, uint32_t peer);

	/*
	 * Writes to `fds` the descriptors that become readable when there is something
	 * to poll: first those for control traffic, whose number goes to `*ncontrol`,
	 * then those for data. Returns how many there are in all; 0 for an endpoint in
	 * a simulated network.
	 */
	unsigned (*fds)(struct mmc_endpoint *endpoint, int *fds,
			unsigned *ncontrol);

	/*
	 * Makes the descriptors become readable at the next event; a thread calls this
	 * before it sleeps on them. Returns whether there may be an event already, so
	 * that the thread must not sleep. NULL where descriptors become readable
	 * without it.
	 */
	bool (*arm)(struct mmc_endpoint *endpoint);

	/*
	 * Returns the time by which to poll even if no descriptor becomes readable,
	 * such as when a delayed datagram is due; MMC_NEVER_NS if there is none. NULL:
	 * there never is.
	 */
	uint64_t (*deadline_ns)(struct mmc_endpoint *endpoint);

	/*
	 * Has the kernel drop what does not come from a rank of the team, or names none of
	 * the `nchannels` channels, at most MMC_GUARD_CHANNELS_MAX, as far as the
	 * kernel can tell. With 0 channels any is good. One datagram in MMC_SAMPLED,
	 * chosen at random, passes, cut to MMC_HEADER_BYTES. A later call replaces the
	 * channels. If the kernel refuses, nothing changes. NULL where it cannot.
	 */
	void (*guard)(struct mmc_endpoint *endpoint, const uint64_t *channels,
		      unsigned nchannels);

	/* Leaves the groups and frees the endpoint. */
	void (*close)(struct mmc_endpoint *endpoint);
};

#endif
