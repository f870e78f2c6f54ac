/* SPDX-License-Identifier: BSD-3-Clause */
/* An opened port of a device, and memory registered with it. */
#ifndef MMC_DRIVERS_VERBS_PORT_H
#define MMC_DRIVERS_VERBS_PORT_H

#include <mpimcast/mmc.h>

#include "drivers/verbs/address.h"
#include "drivers/verbs/dl.h"

/* The most stretches of memory that a connection reads at a time. */
#define MMC_VERBS_READS_MAX 16

/* The most routers that a unicast packet passes. */
#define MMC_VERBS_HOPS_MAX 64

struct mmc_verbs_port {
	struct mmc_team_options options;
	struct ibv_context *context; /* the opened device */
	struct ibv_pd *pd; /* the protection domain of all resources */
	struct ibv_device_attr limits;
	enum ibv_mtu mtu;
	/* The most reads at a time over a connection, in either direction. */
	uint32_t reads_max;
	/* Whether the device has memory windows of type 2. */
	bool has_windows;
};

struct mmc_verbs_memory {
	uint8_t *bytes;	       /* begins at a page boundary */
	struct ibv_mr *region; /* its registration */
};

/*
 * Opens the device of `options`. Returns 0, or -MMC_ENODEV with the reason set;
 * mmc_verbs_port_close() must be called in either case.
 */
int mmc_verbs_port_open(struct mmc_verbs_port *port,
			const struct mmc_team_options *options);

/* Closes the device, if it is open. */
void mmc_verbs_port_close(struct mmc_verbs_port *port);

/*
 * Returns whether the port is active now. Writes its present attributes, unless
 * `attributes` is NULL or they cannot be read.
 */
bool mmc_verbs_port_active(const struct mmc_verbs_port *port,
			   struct ibv_port_attr *attributes);

/* Returns the time by the endpoints' clock, CLOCK_MONOTONIC. */
uint64_t mmc_verbs_clock_ns(void);

/*
 * Sets the error's text, "rxe0: cannot <what>: <error>", where `error` is an errno
 * value. Returns -MMC_ENOMEM for ENOMEM, else -MMC_EIO.
 */
int mmc_verbs_explain(const struct mmc_verbs_port *port, const char *what,
		      int error);

/*
 * Returns the attributes of an address handle to the group or port with this GID. The
 * LID only matters on InfiniBand.
 */
struct ibv_ah_attr mmc_verbs_ah_attr(const struct mmc_verbs_port *port,
				     const uint8_t *gid, uint16_t lid,
				     uint8_t hop_limit);

/*
 * Allocates `nbytes` of memory, all zeros, that the device may write to. Returns 0,
 * -MMC_ENOMEM, or another negative error with the reason set.
 */
int mmc_verbs_memory_init(struct mmc_verbs_memory *memory,
			  const struct mmc_verbs_port *port, size_t nbytes);

/* Frees the memory, if there is any. No queue may use it any more. */
void mmc_verbs_memory_destroy(struct mmc_verbs_memory *memory);

#endif
