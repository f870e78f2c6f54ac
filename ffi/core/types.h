/* SPDX-License-Identifier: BSD-3-Clause */
/* The terms of the protocol as C types; see ffi/GLOSSARY.md and ffi/PROTOCOL.md. */
#ifndef MMC_CORE_TYPES_H
#define MMC_CORE_TYPES_H

#include <mpimcast/errors.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/time.h"

/* The last value of `enum mmc_error`. */
#define MMC_ERROR_MAX MMC_ELATE

/* Stands in place of a peer's rank for all ranks, by multicast, or for no rank. */
#define MMC_PEER_ALL UINT32_MAX

/* The index of a chunk has 30 bits on the wire (see wire/header.h). */
#define MMC_CHUNKS_MAX (UINT32_C(1) << 30)

/* The most chains side by side: their positions must fit into one control datagram. */
#define MMC_CHAINS_MAX 256

/* The most runs that one request names: with its record it fits into 512 bytes. */
#define MMC_RUNS_MAX 32

/* The most rounds of a barrier: 2^20 ranks. */
#define MMC_ROUNDS_MAX 20

/* `count` chunks from chunk `first` on. */
struct mmc_run {
	uint32_t first;
	uint32_t count;
};

/* How chunks that multicast lost are fetched (REPAIR=nak|neighbour|read). */
enum mmc_repair {
	MMC_REPAIR_NAK,
	MMC_REPAIR_NEIGHBOUR,
	MMC_REPAIR_READ,
};

/* The protection of a datagram beyond the network's own checksums. */
enum mmc_checksum {
	MMC_CHECKSUM_OFF,
	MMC_CHECKSUM_HEADER,
	MMC_CHECKSUM_FULL,
};

#endif
