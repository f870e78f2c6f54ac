/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of a stream. Nothing is dropped, retried or suppressed without a
 * counter; comm.stats() shows this table. Bytes include the header.
 */
#ifndef MMC_CORE_COUNTERS_H
#define MMC_CORE_COUNTERS_H

#include <stdint.h>

#define MMC_COUNTER_TABLE(X)                                                       \
	X(TX_MULTICAST_BYTES, "tx_multicast_bytes")                                \
	X(TX_MULTICAST_DATAGRAMS, "tx_multicast_datagrams")                        \
	X(TX_CONTROL_BYTES, "tx_control_bytes")                                    \
	X(TX_CONTROL_DATAGRAMS, "tx_control_datagrams")                            \
	X(TX_REPAIR_BYTES, "tx_repair_bytes")                                      \
	X(TX_REPAIR_DATAGRAMS, "tx_repair_datagrams")                              \
	X(RX_MULTICAST_BYTES, "rx_multicast_bytes")                                \
	X(RX_MULTICAST_DATAGRAMS, "rx_multicast_datagrams")                        \
	X(RX_CONTROL_BYTES, "rx_control_bytes")                                    \
	X(RX_CONTROL_DATAGRAMS, "rx_control_datagrams")                            \
	X(RX_REPAIR_BYTES, "rx_repair_bytes")                                      \
	X(RX_REPAIR_DATAGRAMS, "rx_repair_datagrams")                              \
	/* Chunks that had to be asked for, lost chunks that arrived as repairs, \
	 * and copies of chunks that were here already. */ \
	X(RX_LOST_CHUNKS, "rx_lost_chunks")                                        \
	X(RX_REPAIRED_CHUNKS, "rx_repaired_chunks")                                \
	X(RX_DUPLICATE_CHUNKS, "rx_duplicate_chunks")                              \
	/* Datagrams of a stream, epoch, sender or place that is not ours, and \
	 * datagrams whose checksum or form is wrong. */   \
	X(RX_FOREIGN_DATAGRAMS, "rx_foreign_datagrams")                            \
	X(RX_CORRUPT_DATAGRAMS, "rx_corrupt_datagrams")                            \
	/* Early datagrams kept for an operation to come, and those dropped. */    \
	X(RX_PARKED_DATAGRAMS, "rx_parked_datagrams")                              \
	X(RX_UNPARKED_DATAGRAMS, "rx_unparked_datagrams")                          \
	/* Early requests dropped for lack of room: they are sent again. */        \
	X(RX_UNKEPT_REQUESTS, "rx_unkept_requests")                                \
	X(EPOCHS, "epochs")                                                        \
	X(UNICAST_EPOCHS, "unicast_epochs")                                        \
	X(OPEN_NS, "open_ns")                                                      \
	/* Time in each stage, summed over operations. */                          \
	X(ENTRY_NS, "entry_ns")                                                    \
	X(MULTICAST_NS, "multicast_ns")                                            \
	X(REPAIR_NS, "repair_ns")                                                  \
	X(RELEASE_NS, "release_ns")                                                \
	/* Allocations from the system after the stream was opened, and        \
	 * registrations of memory for others to read. */   \
	X(ALLOCATIONS, "allocations")                                              \
	X(REGISTRATIONS, "registrations")                                          \
	/* Adverts sent; reads of the left neighbour's bitmap; reads of its data \
	 * with the chunks and bytes they brought; reads of no use. */ \
	X(ADVERTS, "adverts")                                                      \
	X(MAP_READS, "map_reads")                                                  \
	X(READS, "reads")                                                          \
	X(READ_CHUNKS, "read_chunks")                                              \
	X(READ_BYTES, "read_bytes")                                                \
	X(FAILED_READS, "failed_reads")                                            \
	/* Chunks received directly in place, and datagrams received in    \
	 * another chunk's place. */       \
	X(ZERO_COPY_CHUNKS, "zero_copy_chunks")                                    \
	X(EVACUATED_CHUNKS, "evacuated_chunks")                                    \
	/* Over verbs: connections and memberships in groups made anew. */         \
	X(RECONNECTS, "reconnects")                                                \
	X(REJOINS, "rejoins")

enum mmc_counter {
#define MMC_COUNTER_ENUM(counter, name) MMC_COUNT_##counter,
	MMC_COUNTER_TABLE(MMC_COUNTER_ENUM)
#undef MMC_COUNTER_ENUM
		MMC_COUNTER_COUNT,
};

struct mmc_counters {
	uint64_t value[MMC_COUNTER_COUNT];
};

static inline void mmc_count(struct mmc_counters *counters,
			     enum mmc_counter counter, uint64_t amount)
{
	counters->value[counter] += amount;
}

#endif
