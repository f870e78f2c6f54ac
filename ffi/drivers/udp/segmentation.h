/* SPDX-License-Identifier: BSD-3-Clause */
/* What an interface's segmentation offload (GSO) takes at a time. */
#ifndef MMC_DRIVERS_UDP_SEGMENTATION_H
#define MMC_DRIVERS_UDP_SEGMENTATION_H

#include <stdint.h>

struct mmc_udp_segmentation {
	uint32_t payload_bytes; /* the longest payload of a train */
	uint32_t datagrams;	/* the most datagrams in one */
};

/*
 * Returns the longest trains that pass the interface `name` whole: before a longer one,
 * the kernel cuts it into datagrams itself, and each of them then costs as much as one
 * that was sent alone. Where the kernel does not say, these are the longest trains that
 * it takes at all.
 */
struct mmc_udp_segmentation mmc_udp_segmentation_of(const char *name);

#endif
