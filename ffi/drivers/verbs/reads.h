/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of other ranks' memory, under way or just completed. Each read has its own
 * place in registered memory of this rank.
 */
#ifndef MMC_DRIVERS_VERBS_READS_H
#define MMC_DRIVERS_VERBS_READS_H

#include "drivers/driver.h"
#include "drivers/verbs/connections.h"

/*
 * The most reads under way, and the most bytes of one: together they fill a fast link.
 */
#define MMC_VERBS_NREADS 16
#define MMC_VERBS_READ_BYTES_MAX 65536

enum mmc_verbs_read_state {
	MMC_VERBS_READ_FREE,
	MMC_VERBS_READ_UNDER_WAY,
	MMC_VERBS_READ_DONE,
	MMC_VERBS_READ_FAILED,
	MMC_VERBS_READ_LENT, /* to the engine, until the next poll */
	/* Not free: a broken connection may still use the read's memory. */
	MMC_VERBS_READ_LOST,
};

struct mmc_verbs_read {
	enum mmc_verbs_read_state state;
	struct mmc_verbs_connection *connection;
	uint64_t cookie;
	uint32_t nbytes;
	uint32_t npieces;
	bool reset; /* failed, and its connection was reset */
};

struct mmc_verbs_reads {
	struct mmc_verbs_memory memory;
	struct mmc_verbs_read items[MMC_VERBS_NREADS];
	uint32_t nover; /* done or failed, not yet reported */
	uint32_t nlent;
};

/* Returns 0 or an error, with the reason set. */
int mmc_verbs_reads_init(struct mmc_verbs_reads *reads,
			 const struct mmc_verbs_port *port);

void mmc_verbs_reads_destroy(struct mmc_verbs_reads *reads);

/* Does what a driver's read() does, from the peer of `connection`, which must be up. */
int mmc_verbs_reads_start(struct mmc_verbs_reads *reads,
			  struct mmc_verbs_connections *connections,
			  struct mmc_verbs_connection *connection,
			  const struct mmc_piece *pieces, unsigned npieces,
			  uint64_t cookie);

/*
 * Takes all completions of what the connections have sent or read, and breaks those
 * that have failed. Returns whether there was any completion.
 */
bool mmc_verbs_reads_reap(struct mmc_verbs_reads *reads,
			  struct mmc_verbs_connections *connections);

/* Breaks a connection and fails its reads. */
void mmc_verbs_reads_break(struct mmc_verbs_reads *reads,
			   struct mmc_verbs_connections *connections,
			   struct mmc_verbs_connection *connection,
			   enum ibv_wc_status status);

/* Writes the event of a read that has ended. Returns false if there is none. */
bool mmc_verbs_reads_take(struct mmc_verbs_reads *reads,
			  struct mmc_event *event);

/* Frees the memory that the taken events have lent to the engine. */
void mmc_verbs_reads_reuse(struct mmc_verbs_reads *reads);

#endif
