/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of a stream, as comm.stats() shows them: rows of X(constant, name). tx_
 * counts what this rank has sent, rx_ what it has received. Bytes include the header.
 * Whatever is dropped, repeated or suppressed is counted.
 */
#ifndef MMC_CORE_COUNTERS_H
#define MMC_CORE_COUNTERS_H

#include "core/wire/header.h"

#define MMC_COUNTER_TABLE(X)                                                        \
	X(TX_MULTICAST_BYTES, "tx_multicast_bytes")                                 \
	X(TX_MULTICAST_DATAGRAMS, "tx_multicast_datagrams")                         \
	X(TX_CONTROL_BYTES, "tx_control_bytes")                                     \
	X(TX_CONTROL_DATAGRAMS, "tx_control_datagrams")                             \
	X(TX_REPAIR_BYTES, "tx_repair_bytes")                                       \
	X(TX_REPAIR_DATAGRAMS, "tx_repair_datagrams")                               \
	X(RX_MULTICAST_BYTES, "rx_multicast_bytes")                                 \
	X(RX_MULTICAST_DATAGRAMS, "rx_multicast_datagrams")                         \
	X(RX_CONTROL_BYTES, "rx_control_bytes")                                     \
	X(RX_CONTROL_DATAGRAMS, "rx_control_datagrams")                             \
	X(RX_REPAIR_BYTES, "rx_repair_bytes")                                       \
	X(RX_REPAIR_DATAGRAMS, "rx_repair_datagrams")                               \
	/* Chunks that were asked for here, or announced as repairs. */             \
	X(RX_LOST_CHUNKS, "rx_lost_chunks")                                         \
	/* Those of them that then arrived as repairs or by reads. */               \
	X(RX_REPAIRED_CHUNKS, "rx_repaired_chunks")                                 \
	/* Parity chunks that were sent, and those that took a lost one's place. */ \
	X(PARITY_SENT, "parity_sent")                                               \
	X(PARITY_USED, "parity_used")                                               \
	/* Groups that were mended, and chunks asked for with a code. */            \
	X(GROUPS_MENDED, "groups_mended")                                           \
	X(FELL_BACK, "fell_back")                                                   \
	/* Chunks that arrived although they were here already. */                  \
	X(RX_DUPLICATE_CHUNKS, "rx_duplicate_chunks")                               \
	/* Datagrams that fit no stream, epoch, sender or chunk here. */            \
	X(RX_FOREIGN_DATAGRAMS, "rx_foreign_datagrams")                             \
	/* Datagrams whose length or a field is not possible. */                    \
	X(RX_MALFORMED_DATAGRAMS, "rx_malformed_datagrams")                         \
	/* Datagrams whose checksum is wrong. */                                    \
	X(RX_CORRUPT_DATAGRAMS, "rx_corrupt_datagrams")                             \
	/* Datagrams that were not made by the rank that they name. */              \
	X(RX_FORGED_DATAGRAMS, "rx_forged_datagrams")                               \
	/* Datagrams that their rank has sent, but that came before. */             \
	X(RX_REPLAYED_DATAGRAMS, "rx_replayed_datagrams")                           \
	/* Datagrams that the kernel dropped in a flood: an estimate. */            \
	X(RX_FILTERED_DATAGRAMS, "rx_filtered_datagrams")                           \
	/* Datagrams kept for an operation that has not started here. */            \
	X(RX_PARKED_DATAGRAMS, "rx_parked_datagrams")                               \
	/* Such datagrams that were dropped for lack of room. */                    \
	X(RX_UNPARKED_DATAGRAMS, "rx_unparked_datagrams")                           \
	/* NAKs dropped: too early, or for more than can be lacking. */             \
	X(RX_UNKEPT_REQUESTS, "rx_unkept_requests")                                 \
	/* Operations started, those with a code, and those without multicast. */   \
	X(EPOCHS, "epochs")                                                         \
	X(CODED_EPOCHS, "coded_epochs")                                             \
	X(UNICAST_EPOCHS, "unicast_epochs")                                         \
	/* Time in each stage, summed over operations. */                           \
	X(ENTRY_NS, "entry_ns")                                                     \
	X(MULTICAST_NS, "multicast_ns")                                             \
	X(REPAIR_NS, "repair_ns")                                                   \
	X(RELEASE_NS, "release_ns")                                                 \
	/* Allocations from the system after the stream was opened. */              \
	X(ALLOCATIONS, "allocations")                                               \
	/* Registrations of memory for others to read. */                           \
	X(REGISTRATIONS, "registrations")                                           \
	/* Adverts sent to the right neighbour. */                                  \
	X(ADVERTS, "adverts")                                                       \
	/* Reads of the left neighbour's bitmap. */                                 \
	X(MAP_READS, "map_reads")                                                   \
	/* Reads of its data, and the chunks and bytes that they brought. */        \
	X(READS, "reads")                                                           \
	X(READ_CHUNKS, "read_chunks")                                               \
	X(READ_BYTES, "read_bytes")                                                 \
	/* Reads that failed, or brought another operation's data. */               \
	X(FAILED_READS, "failed_reads")                                             \
	/* Chunks that the device put in their places. */                           \
	X(ZERO_COPY_CHUNKS, "zero_copy_chunks")                                     \
	/* Datagrams that the device put in another chunk's place. */               \
	X(EVACUATED_CHUNKS, "evacuated_chunks")                                     \
	/* Over verbs: connections and memberships in groups made anew. */          \
	X(RECONNECTS, "reconnects")                                                 \
	X(REJOINS, "rejoins")                                                       \
	/* System calls that sent datagrams, and that looked for some. */           \
	X(TX_CALLS, "tx_calls")                                                     \
	X(RX_CALLS, "rx_calls")                                                     \
	/* Groups that the coder mended, and those whose parity it had computed. */ \
	X(CODER_MENDED, "coder_mended")                                             \
	X(CODER_ENCODED, "coder_encoded")

enum mmc_counter {
#define MMC_COUNTER_ENUM(counter, name) MMC_COUNT_##counter,
	MMC_COUNTER_TABLE(MMC_COUNTER_ENUM)
#undef MMC_COUNTER_ENUM
		MMC_COUNTER_COUNT,
};

struct mmc_counters {
	uint64_t value[MMC_COUNTER_COUNT];
};

/* Adds `amount` to `counter`. */
static inline void mmc_count(struct mmc_counters *counters,
			     enum mmc_counter counter, uint64_t amount)
{
	counters->value[counter] += amount;
}

/* Counts `ndatagrams` sent datagrams of kind `traffic`, `nbytes` long in all. */
static inline void mmc_count_sent(struct mmc_counters *counters,
				  enum mmc_traffic traffic, uint64_t nbytes,
				  uint64_t ndatagrams)
{
	static const enum mmc_counter bytes[MMC_TRAFFIC_COUNT] = {
		[MMC_TRAFFIC_MULTICAST] = MMC_COUNT_TX_MULTICAST_BYTES,
		[MMC_TRAFFIC_CONTROL] = MMC_COUNT_TX_CONTROL_BYTES,
		[MMC_TRAFFIC_REPAIR] = MMC_COUNT_TX_REPAIR_BYTES,
	};
	static const enum mmc_counter datagrams[MMC_TRAFFIC_COUNT] = {
		[MMC_TRAFFIC_MULTICAST] = MMC_COUNT_TX_MULTICAST_DATAGRAMS,
		[MMC_TRAFFIC_CONTROL] = MMC_COUNT_TX_CONTROL_DATAGRAMS,
		[MMC_TRAFFIC_REPAIR] = MMC_COUNT_TX_REPAIR_DATAGRAMS,
	};

	mmc_count(counters, bytes[traffic], nbytes);
	mmc_count(counters, datagrams[traffic], ndatagrams);
}

/* Counts received datagrams of kind `traffic`, `nbytes` long together. */
static inline void mmc_count_received(struct mmc_counters *counters,
				      enum mmc_traffic traffic, uint64_t nbytes,
				      uint32_t ndatagrams)
{
	static const enum mmc_counter bytes[MMC_TRAFFIC_COUNT] = {
		[MMC_TRAFFIC_MULTICAST] = MMC_COUNT_RX_MULTICAST_BYTES,
		[MMC_TRAFFIC_CONTROL] = MMC_COUNT_RX_CONTROL_BYTES,
		[MMC_TRAFFIC_REPAIR] = MMC_COUNT_RX_REPAIR_BYTES,
	};
	static const enum mmc_counter datagrams[MMC_TRAFFIC_COUNT] = {
		[MMC_TRAFFIC_MULTICAST] = MMC_COUNT_RX_MULTICAST_DATAGRAMS,
		[MMC_TRAFFIC_CONTROL] = MMC_COUNT_RX_CONTROL_DATAGRAMS,
		[MMC_TRAFFIC_REPAIR] = MMC_COUNT_RX_REPAIR_DATAGRAMS,
	};

	mmc_count(counters, bytes[traffic], nbytes);
	mmc_count(counters, datagrams[traffic], ndatagrams);
}

#endif
