/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's memberships in the multicast groups. Without them the fabric does not
 * deliver the groups' packets. Attaching the queues to the groups is a separate step
 * (connect.c).
 */
#ifndef MMC_DRIVERS_VERBS_GROUPS_H
#define MMC_DRIVERS_VERBS_GROUPS_H

#include "drivers/verbs/port.h"

/* The longest time that the subnet manager may take for all joins together. */
#define MMC_VERBS_JOIN_NS (10 * MMC_S_NS)

struct mmc_verbs_group {
	uint32_t address; /* IPv4, host order */
	/* The group's address in the fabric, once the fabric has told it. */
	union ibv_gid gid;
	uint16_t lid;
	struct ibv_ah_attr ah_attr; /* for an address handle to the group */
	/* The address to which the queue is attached. */
	union ibv_gid attached_gid;
	uint16_t attached_lid;
	bool asked; /* joined or being joined through the connection manager */
	bool renewed; /* joined again; the queue is to be attached again */
	bool lost;    /* the membership may have ended: to be joined again */
	int fd;	      /* the socket that is a member, or -1 */
};

struct mmc_verbs_groups {
	const struct mmc_verbs_port *port;
	struct mmc_verbs_group *items;
	uint32_t count;
	struct rdma_event_channel *channel; /* NULL if joined by sockets */
	struct rdma_cm_id *id;		    /* NULL if joined by sockets */
};

/*
 * Initializes the groups of the port's options, without joining them; a pair has none.
 * Returns 0 or -MMC_ENOMEM.
 */
int mmc_verbs_groups_init(struct mmc_verbs_groups *groups,
			  const struct mmc_verbs_port *port);

/* Leaves the groups, from which the queues must have been detached. */
void mmc_verbs_groups_destroy(struct mmc_verbs_groups *groups);

/*
 * Joins all groups by the means that the team's option `join` says, and writes their
 * addresses in the fabric. Returns 0, or -MMC_EIO with the reason set if the fabric
 * refuses or does not answer in time.
 */
int mmc_verbs_groups_join(struct mmc_verbs_groups *groups);

/*
 * Leaves a group, and asks to join it again by the means used before. When the fabric
 * has answered, `renewed` is set, or `lost` if it refuses; through the connection
 * manager that may be after the call. Returns 0 or -MMC_EIO.
 */
int mmc_verbs_groups_rejoin(struct mmc_verbs_groups *groups,
			    struct mmc_verbs_group *group);

/*
 * Handles the connection manager's pending events, without waiting. Adds to `*nlost`
 * how many joins were refused and how many memberships have ended. Returns whether
 * there was any such event, or the answer to a join.
 */
bool mmc_verbs_groups_hear(struct mmc_verbs_groups *groups, uint32_t *nlost);

/*
 * The two means of joining all groups. Through the connection manager (rdma_cm), on
 * InfiniBand the subnet manager is asked, and on Ethernet the kernel becomes a member.
 * By sockets, which is only possible on Ethernet, a socket for each group becomes a
 * member. Both return 0 or a negative error, with the reason set; groups that were
 * joined before the error stay joined until mmc_verbs_groups_leave().
 */
int mmc_verbs_groups_join_through_cm(struct mmc_verbs_groups *groups);
int mmc_verbs_groups_join_by_socket(struct mmc_verbs_groups *groups);

/* Does mmc_verbs_groups_rejoin() for a group that was joined through rdma_cm. */
int mmc_verbs_groups_rejoin_cm(struct mmc_verbs_groups *groups,
			       struct mmc_verbs_group *group);

/* Leaves the groups that were joined through rdma_cm, and closes it. */
void mmc_verbs_groups_leave_cm(struct mmc_verbs_groups *groups);

void mmc_verbs_groups_leave(struct mmc_verbs_groups *groups);

/* Sets the error's text, "rxe0: cannot join 239.1.2.3: <why>". Returns -MMC_EIO. */
int mmc_verbs_groups_refused(const struct mmc_verbs_groups *groups,
			     const struct mmc_verbs_group *group,
			     const char *why);

#endif
