/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's membership in the multicast groups, without which the fabric would not
 * deliver their packets. Attaching the queues to the groups is a separate step.
 */
#ifndef MMC_DRIVERS_VERBS_GROUPS_H
#define MMC_DRIVERS_VERBS_GROUPS_H

#include "drivers/verbs/port.h"

/* The time that the subnet manager may take for all joins together. */
#define MMC_VERBS_JOIN_NS (10 * MMC_S_NS)

struct mmc_verbs_group {
	uint32_t address; /* IPv4, host order */
	union ibv_gid gid;
	uint16_t lid;
	struct ibv_ah_attr ah_attr; /* of packets to the group */
	union ibv_gid attached_gid; /* where the queue is attached */
	uint16_t attached_lid;
	bool asked;   /* to join, through rdma_cm; not left since */
	bool renewed; /* the fabric has answered; the queue has to follow */
	bool lost;    /* the membership may have ended: join again */
	int fd;	      /* the socket that is a member, or -1 */
};

struct mmc_verbs_groups {
	const struct mmc_verbs_port *port;
	struct mmc_verbs_group *items;
	uint32_t count;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

/* Returns 0 or -MMC_ENOMEM. */
int mmc_verbs_groups_init(struct mmc_verbs_groups *groups,
			  const struct mmc_verbs_port *port);

/* Leaves the groups; the queues must be detached. */
void mmc_verbs_groups_destroy(struct mmc_verbs_groups *groups);

/*
 * Joins all groups as the team's option says, and writes what they are to the fabric.
 * Returns 0, or -MMC_EIO with the reason if the fabric refuses or does not answer in
 * time.
 */
int mmc_verbs_groups_join(struct mmc_verbs_groups *groups);

/*
 * Leaves a group and joins it again by the means used before. `renewed` is set when the
 * fabric has answered, `lost` when it refuses. Returns 0 or -MMC_EIO.
 */
int mmc_verbs_groups_rejoin(struct mmc_verbs_groups *groups,
			    struct mmc_verbs_group *group);

/*
 * Takes the connection manager's events, without waiting; adds to `*nlost` how many
 * joins were refused or memberships ended. Returns whether there was an event.
 */
bool mmc_verbs_groups_hear(struct mmc_verbs_groups *groups, uint32_t *nlost);

/*
 * The two means of joining. `through_cm` asks the subnet manager or, on Ethernet, lets
 * the kernel's connection manager become a member; `by_socket`, on Ethernet only, makes
 * sockets members. Groups joined before an error stay joined until
 * mmc_verbs_groups_leave().
 */
int mmc_verbs_groups_join_through_cm(struct mmc_verbs_groups *groups);
int mmc_verbs_groups_join_by_socket(struct mmc_verbs_groups *groups);

/* Does what mmc_verbs_groups_rejoin() does, for a group joined through rdma_cm. */
int mmc_verbs_groups_rejoin_cm(struct mmc_verbs_groups *groups,
			       struct mmc_verbs_group *group);

void mmc_verbs_groups_leave_cm(struct mmc_verbs_groups *groups);
void mmc_verbs_groups_leave(struct mmc_verbs_groups *groups);

/* Sets "rxe0: cannot join 239.1.2.3: <why>" and returns -MMC_EIO. */
int mmc_verbs_groups_refused(const struct mmc_verbs_groups *groups,
			     const struct mmc_verbs_group *group,
			     const char *why);

#endif
