/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The offload ABI between the firmware of a network adapter and its device: how datagrams
 * are received and sent, and how payloads get to the host's memory. What host and firmware
 * say to each other is in mpimcast/abi/offload.h.
 *
 * All numbers are little-endian, and all offsets count from the first byte of the
 * adapter's memory. The rings are those of mpimcast/abi/offload.h, with their doorbells: the
 * device is armed by `sends.armed` for all that the firmware puts in any ring, and for
 * what it asks; each of the firmware's harts by the `events.armed` of its queue.
 */
#ifndef MPIMCAST_NIC_H
#define MPIMCAST_NIC_H

#include <mpimcast/abi/offload.h>
#include <stdint.h>

#define MMC_NIC_MAGIC UINT32_C(0x434e4d4d) /* "MMNC" */
#define MMC_NIC_VERSION UINT32_C(2)

/* The most harts of an adapter's processor that take part. */
#define MMC_NIC_HARTS_MAX 4

/* Entries of the rings: powers of two. There are as many slots in all queues together. */
#define MMC_NIC_EVENTS 2048
#define MMC_NIC_SLOTS 1024
#define MMC_NIC_SENDS 64
#define MMC_NIC_PLACEMENTS 1024

/* How payloads get to their places in the host's memory. */
enum mmc_nic_mode {
	MMC_NIC_COPY = 0, /* the firmware's processor copies them */
	MMC_NIC_DMA = 1,  /* the device does, by `placements` */
	/*
	 * The device writes them where they belong as they arrive, as by RDMA writes over
	 * unreliable connections, if they carry the tag of the registered buffer. Other
	 * payloads are placed as by MMC_NIC_DMA.
	 */
	MMC_NIC_UC = 2,
};

enum mmc_nic_event_kind {
	MMC_NIC_DATAGRAM = 1, /* a slot has been filled */
	MMC_NIC_REFUSED = 2,  /* a datagram of `nbytes` was dropped */
	MMC_NIC_PLACED = 3,   /* a placement has completed */
	MMC_NIC_BROKEN =
		4, /* `error`: see MMC_EVENT_BROKEN of drivers/driver.h */
	MMC_NIC_ALIVE = 5, /* the process of `source` exists */
	MMC_NIC_GONE = 6,  /* the process of `source` has ended */
	/*
	 * The payload of chunk `first` of `source`, `nbytes` long, is in the registered
	 * buffer, whose `cookie` it is. It has taken no slot.
	 */
	MMC_NIC_ARRIVED = 7,
};

/* What the device tells the firmware. */
struct mmc_nic_event {
	uint32_t kind; /* enum mmc_nic_event_kind */
	uint32_t slot; /* that holds the datagram; it is the firmware's now */
	uint32_t nbytes;
	uint32_t source; /* a rank, or as drivers/driver.h says */
	uint32_t from_ip;
	uint32_t from_port;
	int32_t error;
	uint32_t refusal; /* enum mmc_refusal */
	uint64_t cookie;  /* of the placement, or of the buffer */
	uint32_t first;	  /* of MMC_NIC_ARRIVED: the chunk */
	uint32_t count;	  /* 1; harts tell each other of several chunks */
	uint8_t reserved[16];
};

/*
 * A datagram to send: its head, which lies in the firmware's memory, and its body, which
 * lies behind the head or, if `body_offset` is not 0, there. Neither may change until the
 * device has consumed the entry.
 */
struct mmc_nic_send {
	uint64_t head_offset;
	uint64_t body_offset;
	uint32_t head_bytes;
	uint32_t body_bytes;
	uint32_t peer;	   /* a rank, or UINT32_MAX for multicast */
	uint32_t subgroup; /* of a multicast */
	uint32_t control;  /* whether it goes where the peer receives control */
	uint8_t reserved[28];
};

/* A payload to be put in its place. `from` may not change until MMC_NIC_PLACED. */
struct mmc_nic_placement {
	uint64_t from_offset;
	uint64_t to_offset;
	uint64_t nbytes;
	uint64_t cookie;
};

/*
 * A tagged buffer: the result of one operation, into which the device writes payloads by
 * itself. A device that has RDMA writes finds in a packet the key of a memory and an offset
 * in it. Multicast has one packet for all receivers, whose memories differ. So here the
 * header is the tag: channel, epoch and sender stand for a key of that sender's block, for
 * each sender has one of its own; the index of the chunk stands for the offset; and index
 * and payload's length, which MMC_NIC_ARRIVED tells, stand for the immediate of a write.
 *
 * The device writes nothing outside of the sender's block, and nothing but chunks that are
 * sent for the first time, whole and with a right header; all else goes to a slot. Where
 * the checksum of payloads (MMC_CHECKSUM_FULL) is the engine's, no buffer is registered.
 */
struct mmc_nic_buffer {
	uint64_t channel;	/* with the bits of MMC_CHANNEL_MASK alone */
	uint64_t cookie;	/* no two buffers have the same */
	uint64_t blocks_offset; /* of struct mmc_nic_block [nranks] */
	uint32_t epoch;
	uint32_t chunk_bytes;
};

/* The part of a buffer for one sender's payloads: adjacent, all full but the last. */
struct mmc_nic_block {
	uint64_t offset;
	uint64_t nbytes; /* 0: nothing of this sender is written */
	uint32_t first;	 /* the first of its chunks */
	uint32_t reserved;
};

/* What the firmware asks of the device, with arguments or an answer at `body_offset`. */
enum mmc_nic_question {
	MMC_NIC_OPEN = 1,    /* struct mmc_team_options: open the endpoint */
	MMC_NIC_ADDRESS = 2, /* answers uint8_t [address_bytes] */
	MMC_NIC_CONNECT = 3, /* uint8_t [nranks][address_bytes] */
	MMC_NIC_INQUIRE = 4, /* uint32_t peer */
	/*
	 * struct mmc_nic_buffer: write there, and in no other buffer, from now on. The
	 * device keeps a copy of it and its blocks.
	 */
	MMC_NIC_REGISTER = 5,
	/*
	 * Nothing: write in no buffer. Once this is answered nothing is written any more;
	 * and what was written before, the events before the answer have told.
	 */
	MMC_NIC_DEREGISTER = 6,
	/* uint32_t queue: place nothing more for that queue, and receive nothing in it. */
	MMC_NIC_HALT = 7,
};

struct mmc_nic_ask {
	_Alignas(64) uint32_t nasked;
	uint32_t question; /* enum mmc_nic_question */
	uint32_t body_bytes;
	uint64_t body_offset;
	_Alignas(64) uint32_t nanswered;
	int32_t status; /* 0, or a negative enum mmc_error */
	char text[MMC_OFFLOAD_TEXT_SIZE];
};

/* What the device's endpoint is like, once it is open: see struct mmc_endpoint. */
struct mmc_nic_endpoint {
	uint32_t address_bytes;
	uint32_t buffer_bytes;
	uint32_t has_buffer_per_source;
	uint32_t control_is_reliable;
	uint32_t batch_datagrams;
	uint32_t train_datagrams;
};

/*
 * What arrives for one hart. The first hart's queue takes all that is no chunk, and the
 * chunks of some subgroups; the other subgroups' chunks are divided among the other queues:
 * those of subgroup s come to queue s modulo `nqueues`. A device would have a queue pair for
 * each group. The emulated one does not learn in which group a datagram came, and goes by
 * the chunk, as its senders do.
 *
 * Other queues than the first one lose what finds no slot, or no room among the events.
 */
struct mmc_nic_queue {
	struct mmc_offload_ring events; /* the firmware consumes */
	struct mmc_offload_ring slots;	/* the device consumes these two */
	struct mmc_offload_ring placements;
	/*
	 * The device has something for this hart, which sleeps, and has only rung the first
	 * hart's bell: that one passes it on. Of no meaning for the first queue.
	 */
	uint32_t rung;
	struct mmc_nic_event event[MMC_NIC_EVENTS];
	struct mmc_nic_placement placement[MMC_NIC_PLACEMENTS];
	uint32_t slot[MMC_NIC_SLOTS]; /* the numbers of slots to fill */
};

struct mmc_nic {
	uint32_t magic;	  /* MMC_NIC_MAGIC */
	uint32_t version; /* MMC_NIC_VERSION */
	uint32_t mode;	  /* enum mmc_nic_mode */
	uint32_t rings; /* the firmware sets it to have the host's bell rung */
	uint64_t bridge_offset; /* the host's bridge */
	uint64_t bridge_bytes;
	uint64_t region_offset; /* region 0 of the host: all its results */
	uint64_t region_bytes;
	uint64_t slots_offset; /* the firmware's: where slot 0 begins */
	uint64_t slot_bytes;   /* the firmware's: of each slot */
	/* The number of harts. A hart whose own number is not below it stops for good. */
	uint32_t nharts;
	uint32_t nqueues; /* the firmware's: how many of the queues are used */
	struct mmc_nic_endpoint endpoint;
	struct mmc_nic_ask ask;
	struct mmc_offload_ring sends; /* the device consumes */
	struct mmc_nic_send send[MMC_NIC_SENDS];
	struct mmc_nic_queue queue[MMC_NIC_HARTS_MAX];
};

_Static_assert(sizeof(struct mmc_nic_event) == 64, "version 2");
_Static_assert(sizeof(struct mmc_nic_send) == 64, "version 2");
_Static_assert(sizeof(struct mmc_nic_placement) == 32, "version 2");
_Static_assert(sizeof(struct mmc_nic_buffer) == 32, "version 2");
_Static_assert(sizeof(struct mmc_nic_block) == 24, "version 2");

#endif
