/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of other ranks' memory that are under way or just over. What is read
 * goes to registered memory of ours, one place for each read.
 */
#ifndef MMC_DRIVERS_VERBS_READS_H
#define MMC_DRIVERS_VERBS_READS_H

#include "drivers/driver.h"
#include "drivers/verbs/connections.h"

/* Reads at a time, and the bytes of one: together they fill a fast link. */
#define MMC_VERBS_NREADS 16
#define MMC_VERBS_READ_BYTES_MAX 65536

enum mmc_verbs_read_state {
	MMC_VERBS_READ_FREE,
	MMC_VERBS_READ_UNDER_WAY,
	MMC_VERBS_READ_DONE,
	MMC_VERBS_READ_FAILED,
	MMC_VERBS_READ_LENT, /* to the engine, until the next poll */
	/* Not free: a broken connection may still name the memory. */
	MMC_VERBS_READ_LOST,
};

struct mmc_verbs_read {
	enum mmc_verbs_read_state state;
	struct mmc_verbs_connection *connection;
	uint64_t cookie;
	uint32_t nbytes;
	uint32_t npieces;
	bool reset; /* of a failed one: its connection was reset */
};

struct mmc_verbs_reads {
	struct mmc_verbs_memory memory;
	struct mmc_verbs_read items[MMC_VERBS_NREADS];
	uint32_t nover; /* done or failed */
	uint32_t nlent;
};

/* Returns 0 or an error told. */
int mmc_verbs_reads_init(struct mmc_verbs_reads *reads,
			 const struct mmc_verbs_port *port);

void mmc_verbs_reads_destroy(struct mmc_verbs_reads *reads);

/* As a driver's read(), of the peer of `connection`, which is up. */
int mmc_verbs_reads_start(struct mmc_verbs_reads *reads,
			  struct mmc_verbs_connections *connections,
			  struct mmc_verbs_connection *connection,
			  const struct mmc_piece *pieces, unsigned npieces,
			  uint64_t cookie);

/*
 * Takes all that the connections have sent or read, and breaks those that have
 * failed. Returns whether there was anything.
 */
bool mmc_verbs_reads_reap(struct mmc_verbs_reads *reads,
			  struct mmc_verbs_connections *connections);

/* Breaks a connection, and fails its reads. */
void mmc_verbs_reads_break(struct mmc_verbs_reads *reads,
			   struct mmc_verbs_connections *connections,
			   struct mmc_verbs_connection *connection,
			   enum ibv_wc_status status);

/* Writes the event of a read that is over; false if there is none. */
bool mmc_verbs_reads_take(struct mmc_verbs_reads *reads,
			  struct mmc_event *event);

/* Frees what the taken events lent. */
void mmc_verbs_reads_reuse(struct mmc_verbs_reads *reads);

#endif
