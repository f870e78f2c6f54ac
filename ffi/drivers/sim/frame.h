/* SPDX-License-Identifier: BSD-3-Clause */
/* The datagrams on their way through the simulated network, and their memory. */
#ifndef MMC_DRIVERS_SIM_FRAME_H
#define MMC_DRIVERS_SIM_FRAME_H

#include "core/wire/header.h"

/* A datagram on its way. Its copies for several receivers share one frame. */
struct mmc_frame {
	uint32_t references;
	uint32_t source;   /* the host that sent it */
	uint32_t peer;	   /* the host that it is for, or MMC_PEER_ALL */
	uint32_t subgroup; /* if it is for all */
	bool control;	   /* sent to the peer's control address */
	enum mmc_traffic traffic;
	uint32_t nbytes; /* of `bytes` */
	/* The bytes that the datagram stands for: see `payload_scale`. */
	uint32_t scaled_bytes;
	struct mmc_frame *next; /* in the list of unused frames */
	uint8_t bytes[];
};

/* The frames, all of one size, that can be used again. Begins as all zeros. */
struct mmc_frames {
	struct mmc_frame *unused;
};

/*
 * Returns a frame with room for `nbytes`, which is equal in all calls, and with one
 * reference. Returns NULL if memory has run out.
 */
struct mmc_frame *mmc_frames_take(struct mmc_frames *frames, uint32_t nbytes);

/* Gives back a reference. A frame without references can be used again. */
void mmc_frames_release(struct mmc_frames *frames, struct mmc_frame *frame);

/* Frees the unused frames. */
void mmc_frames_free(struct mmc_frames *frames);

/* How many datagrams of each kind there were, and their `scaled_bytes`. */
struct mmc_traffic_count {
	uint64_t datagrams[MMC_TRAFFIC_COUNT];
	uint64_t bytes[MMC_TRAFFIC_COUNT];
};

/* Adds a datagram to the count of its kind. */
static inline void mmc_traffic_add(struct mmc_traffic_count *count,
				   const struct mmc_frame *frame)
{
	count->datagrams[frame->traffic]++;
	count->bytes[frame->traffic] += frame->scaled_bytes;
}

#endif
