/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The terms of the protocol as C types; see ffi/GLOSSARY.md and ffi/PROTOCOL.md. Why its
 * constants are what they are is in ffi/RATIONALE.md.
 */
#ifndef MMC_CORE_TYPES_H
#define MMC_CORE_TYPES_H

#include <mpimcast/errors.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/time.h"

/* The last value of `enum mmc_error`. */
#define MMC_ERROR_MAX MMC_ELATE

/* In place of a receiver's rank: all ranks, by multicast. */
#define MMC_PEER_ALL UINT32_MAX

/* In place of any other rank: none. Messages carry it too, so it has the same value. */
#define MMC_PEER_NONE UINT32_MAX

/* The most chunks of an operation: an index has 30 bits on the wire (wire/header.h). */
#define MMC_CHUNKS_MAX (UINT32_C(1) << 30)

/*
 * The most chains side by side: all their positions must fit into one control message.
 */
#define MMC_CHAINS_MAX 256

/* The most runs in a NAK or NCF, which then fits into 512 bytes with its record. */
#define MMC_RUNS_MAX 32

/* The most rounds of a barrier, which suffice for 2^20 ranks. */
#define MMC_ROUNDS_MAX 20

/* The most operations of a stream that have started and not ended for the user. */
#define MMC_EPOCHS_ACTIVE_MAX 4

/* `count` chunks from chunk `first` on. */
struct mmc_run {
	uint32_t first;
	uint32_t count;
};

/* The policies of repair: what the setting REPAIR may be (core/repair/policy.h). */
enum mmc_repair {
	MMC_REPAIR_NAK,
	MMC_REPAIR_NEIGHBOUR,
	MMC_REPAIR_READ,
};

/* What protects a datagram beyond the network's own checksums: the setting CHECKSUM. */
enum mmc_checksum {
	MMC_CHECKSUM_OFF,    /* nothing */
	MMC_CHECKSUM_HEADER, /* 16 bits over the header and the length */
	MMC_CHECKSUM_FULL,   /* these, and CRC32C over header and payload */
};

#endif
