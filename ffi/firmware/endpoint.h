/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The endpoint of an adapter's device. Three files implement it: nic.c opens and sends,
 * receive.c polls, and buffer.c registers buffers.
 */
#ifndef MMC_FIRMWARE_ENDPOINT_H
#define MMC_FIRMWARE_ENDPOINT_H

#include "firmware/hart.h"
#include "firmware/nic.h"
#include "offload/ring.h"
#include "support/bits.h"

/* A ring of events from the device, or from another hart, which the first hart polls. */
struct mmc_inlet {
	struct mmc_hart *hart; /* NULL: the device tells, in the first queue */
	struct mmc_offload_ring *ring;
	const struct mmc_nic_event *events; /* [MMC_NIC_EVENTS] */
	/* The last look at the hart: was it behind, how much had it taken in, and when. */
	bool behind;
	uint32_t nseen;
	uint64_t seen_ns;
	uint64_t waited_ns; /* without progress: see mmc_nic_lapse_ns() */
};

struct mmc_adapter {
	struct mmc_endpoint endpoint;
	uint32_t nranks;
	uint32_t chunk_bytes;
	struct mmc_nic_block *blocks; /* [nranks] of the registered buffer */
	uint64_t nregistered;	      /* buffers until now */
	/* The cookie of the registered buffer's events, 0 for none; and the engine's. */
	uint64_t registered;
	uint64_t cookie;
	struct mmc_inlet inlets[MMC_NIC_HARTS_MAX]; /* one for each queue */
	uint32_t npolls;
	uint64_t *
		claimed; /* the bitmaps of the harts, for the buffer's chunks */
	size_t claimed_bytes; /* of each bitmap, at most */
	uint32_t stopped;  /* the number of a hart that has stopped; 0: none */
	bool told_stopped; /* the engine knows */
	uint8_t *slots;	   /* [MMC_NIC_SLOTS][slot_bytes] */
	uint64_t slot_bytes; /* of the longest datagram, rounded up */
	uint8_t *heads;	     /* [MMC_NIC_SENDS][head_bytes] */
	uint64_t head_bytes;
	/* Of each slot: the engine's hold on it, and the placements from it. */
	uint16_t nholds[MMC_NIC_SLOTS];
	uint32_t handed[MMC_NIC_SLOTS]; /* slots of the latest poll's events */
	uint32_t nhanded;
};

/* Returns how many slots each queue has. */
static inline uint32_t mmc_nic_nslots(void)
{
	return MMC_NIC_SLOTS / mmc_nic.nqueues;
}

/* Returns for how long a hart may do nothing: others must still hear of it in TIMEOUT. */
static inline uint64_t mmc_nic_patience_ns(const struct mmc_adapter *adapter)
{
	return adapter->endpoint.timeout_ns / 4;
}

/*
 * Returns how much of the time between two looks at a hart is taken off the patience with it:
 * a quarter of the patience at most. A longer gap means that the whole machine has stood
 * still, as under a debugger, and that the first hart has merely run before the others.
 */
static inline uint64_t mmc_nic_lapse_ns(const struct mmc_adapter *adapter,
					uint64_t before_ns, uint64_t now_ns)
{
	return mmc_min_u64(now_ns - before_ns,
			   mmc_nic_patience_ns(adapter) / 4);
}

/* Returns the offset of the ABI that memory has. */
static inline uint64_t mmc_nic_offset(const void *memory)
{
	return (uint64_t)memory - MMC_MACHINE_MEMORY;
}

/* Returns whether memory is the host's: it does not change while an operation needs it. */
static inline bool mmc_nic_is_hosts(const void *memory)
{
	return mmc_nic_offset(memory) - mmc_nic.region_offset <
	       mmc_nic.region_bytes;
}

/* Rings for the device, if it sleeps. */
void mmc_nic_ring_device(void);

/* Asks the device, and waits for its answer. Returns the answer's status. */
int mmc_nic_ask(enum mmc_nic_question question, const void *body,
		uint32_t nbytes);

/* Interrupts the harts for which the device has rung the first one's bell. */
void mmc_nic_relay(void);

/*
 * Notes that a hart has stopped: the device places nothing more for it, and the team breaks
 * down.
 */
void mmc_nic_stop(struct mmc_adapter *adapter, uint32_t number);

/* Gives a slot to the device, which fills it again. */
void mmc_nic_post(uint32_t slot);

/* These are functions of the driver: see drivers/driver.h. */
int mmc_nic_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		 unsigned nmax);
int mmc_nic_place(struct mmc_endpoint *endpoint, void *to,
		  const struct mmc_event *datagrams, uint32_t ndatagrams,
		  uint32_t head_bytes, uint64_t cookie);
int mmc_nic_register(struct mmc_endpoint *endpoint, const void *memory,
		     size_t nbytes, struct mmc_region *region);
void mmc_nic_deregister(struct mmc_endpoint *endpoint,
			struct mmc_region *region);
int mmc_nic_begin(struct mmc_endpoint *endpoint,
		  const struct mmc_predictor *predictor);
int mmc_nic_end(struct mmc_endpoint *endpoint, bool forget);

#endif
