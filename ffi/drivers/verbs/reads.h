/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of other ranks' memory that are under way or have just ended. What a read
 * brings is put in a place of its own, in registered memory of this rank.
 */
#ifndef MMC_DRIVERS_VERBS_READS_H
#define MMC_DRIVERS_VERBS_READS_H

#include "drivers/driver.h"
#include "drivers/verbs/connections.h"

/*
 * The most reads under way, and the most bytes of each. Together they keep a fast link
 * busy.
 */
#define MMC_VERBS_NREADS 16
#define MMC_VERBS_READ_BYTES_MAX 65536

enum mmc_verbs_read_state {
	MMC_VERBS_READ_FREE,
	MMC_VERBS_READ_UNDER_WAY,
	MMC_VERBS_READ_DONE,
	MMC_VERBS_READ_FAILED,
	MMC_VERBS_READ_LENT, /* reported; the engine uses it until next poll */
	/* Reported, but never free: a broken connection may use its memory. */
	MMC_VERBS_READ_LOST,
};

struct mmc_verbs_read {
	enum mmc_verbs_read_state state;
	struct mmc_verbs_connection *connection;
	uint64_t cookie;
	uint32_t nbytes;
	uint32_t nstretches;
	bool reset; /* whether its connection was reset after it failed */
};

struct mmc_verbs_reads {
	struct mmc_verbs_memory memory;
	struct mmc_verbs_read items[MMC_VERBS_NREADS];
	uint32_t nended; /* reads that are done or failed, not yet reported */
	uint32_t nlent;	 /* reads that are lent */
};

/*
 * Makes the memory; the structure is all zeros before. Returns 0 or an error, with the
 * reason set.
 */
int mmc_verbs_reads_init(struct mmc_verbs_reads *reads,
			 const struct mmc_verbs_port *port);

void mmc_verbs_reads_destroy(struct mmc_verbs_reads *reads);

/*
 * The driver's read(), as driver.h describes it, from the peer of `connection`, which
 * must be up.
 */
int mmc_verbs_reads_start(struct mmc_verbs_reads *reads,
			  struct mmc_verbs_connections *connections,
			  struct mmc_verbs_connection *connection,
			  const struct mmc_stretch *stretches,
			  unsigned nstretches, uint64_t cookie);

/*
 * Handles all completions of what the connections have sent or read, and breaks the
 * connections on which something has failed. Returns whether there was any completion.
 */
bool mmc_verbs_reads_reap(struct mmc_verbs_reads *reads,
			  struct mmc_verbs_connections *connections);

/* Does what mmc_verbs_connection_on_error() does, and fails the connection's reads. */
void mmc_verbs_reads_break(struct mmc_verbs_reads *reads,
			   struct mmc_verbs_connections *connections,
			   struct mmc_verbs_connection *connection,
			   enum ibv_wc_status status);

/* Writes the event of one read that has ended. Returns false if there is none. */
bool mmc_verbs_reads_take(struct mmc_verbs_reads *reads,
			  struct mmc_event *event);

/* Frees the reads that are lent to the engine. */
void mmc_verbs_reads_reuse(struct mmc_verbs_reads *reads);

#endif
