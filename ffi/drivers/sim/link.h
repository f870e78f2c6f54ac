/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a link: a queue of bytes that drops what does not fit, and a rate at
 * which bytes leave it.
 */
#ifndef MMC_DRIVERS_SIM_LINK_H
#define MMC_DRIVERS_SIM_LINK_H

#include "core/types.h"

/* The highest rate: a byte takes a picosecond, the unit in which links count time. */
#define MMC_LINK_MBITS_MAX 8000000

struct mmc_link {
	uint64_t byte_ps; /* the time that one byte takes */
	uint64_t queue_bytes;
	uint64_t free_ps; /* when all that entered will have left */
	uint64_t loss;
	uint64_t duplicate;
	uint32_t latency_ns;
	uint32_t jitter_ns;
	uint64_t entered; /* in datagrams, as all below but `bytes` */
	uint64_t duplicated;
	uint64_t delivered;
	uint64_t overflowed;
	uint64_t lost;
	uint64_t bytes; /* of what entered, with overhead */
};

/* Returns the time that a byte takes; `mbits` is 1 to MMC_LINK_MBITS_MAX. */
static inline uint64_t mmc_link_byte_ps(uint32_t mbits)
{
	return MMC_LINK_MBITS_MAX / mbits;
}

/*
 * Queues a datagram of `nbytes` in all. Returns false if it does not fit and is
 * dropped; otherwise writes when it has left, the link's latency not counted.
 */
bool mmc_link_enter(struct mmc_link *link, uint64_t nbytes, uint64_t now_ns,
		    uint64_t *left_ns);

/* Returns how long from now on the queue stays above `queue_bytes`. */
uint64_t mmc_link_busy_ns(const struct mmc_link *link, uint64_t queue_bytes,
			  uint64_t now_ns);

#endif
