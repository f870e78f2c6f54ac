/* SPDX-License-Identifier: BSD-3-Clause */
/* An opened port of a device, and memory registered with it. */
#ifndef MMC_DRIVERS_VERBS_PORT_H
#define MMC_DRIVERS_VERBS_PORT_H

#include <mpimcast/mmc.h>

#include "drivers/verbs/address.h"
#include "drivers/verbs/dl.h"

/* The most pieces of memory that a connection reads at a time. */
#define MMC_VERBS_READS_MAX 16

/* The most routers that a unicast packet passes. */
#define MMC_VERBS_HOPS_MAX 64

struct mmc_verbs_port {
	struct mmc_team_options options; /* device, and how packets travel */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr limits;
	enum ibv_mtu mtu;
	uint32_t reads_max; /* of a connection at a time, as either end */
};

struct mmc_verbs_memory {
	uint8_t *bytes; /* begins at a page boundary */
	struct ibv_mr *region;
};

/*
 * Opens the device of `options`. Returns 0 or -MMC_ENODEV; mmc_verbs_port_close() must
 * be called in either case.
 */
int mmc_verbs_port_open(struct mmc_verbs_port *port,
			const struct mmc_team_options *options);

void mmc_verbs_port_close(struct mmc_verbs_port *port);

/*
 * Returns whether the port is active, and writes its attributes as they are now
 * unless `attributes` is NULL.
 */
bool mmc_verbs_port_active(const struct mmc_verbs_port *port,
			   struct ibv_port_attr *attributes);

/* CLOCK_MONOTONIC, the clock that endpoints go by. */
uint64_t mmc_verbs_clock_ns(void);

/*
 * Sets the text "rxe0: cannot <what>: <error>" for an errno value. Returns -MMC_ENOMEM
 * for ENOMEM, else -MMC_EIO.
 */
int mmc_verbs_explain(const struct mmc_verbs_port *port, const char *what,
		      int error);

/*
 * Returns the address of a group or of another port, given by its GID; `lid`
 * matters on InfiniBand alone.
 */
struct ibv_ah_attr mmc_verbs_ah_attr(const struct mmc_verbs_port *port,
				     const uint8_t *gid, uint16_t lid,
				     uint8_t hop_limit);

/*
 * Allocates memory that the device may write. Returns 0, or a negative error, with the
 * reason set unless memory has run out.
 */
int mmc_verbs_memory_init(struct mmc_verbs_memory *memory,
			  const struct mmc_verbs_port *port, size_t nbytes);

/* Frees the memory, if there is any; no queue may use it any more. */
void mmc_verbs_memory_destroy(struct mmc_verbs_memory *memory);

#endif
