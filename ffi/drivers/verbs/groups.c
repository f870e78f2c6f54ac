/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/groups.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/bits.h"
#include "support/error.h"

int mmc_verbs_groups_init(struct mmc_verbs_groups *groups,
			  const struct mmc_verbs_port *port)
{
	const struct mmc_team_options *options = &port->options;

	groups->port = port;
	groups->items = calloc(options->subgroups, sizeof(*groups->items));
	if (groups->items == NULL)
		return -MMC_ENOMEM;
	groups->count = options->pair != 0 ? 0 : options->subgroups;
	for (uint32_t i = 0; i < groups->count; i++) {
		groups->items[i].address = options->group + i;
		groups->items[i].fd = -1;
	}
	return 0;
}

void mmc_verbs_groups_destroy(struct mmc_verbs_groups *groups)
{
	mmc_verbs_groups_leave(groups);
	free(groups->items);
}

void mmc_verbs_groups_leave(struct mmc_verbs_groups *groups)
{
	mmc_verbs_groups_leave_cm(groups);
	for (uint32_t i = 0; i < groups->count; i++) {
		if (groups->items[i].fd >= 0)
			close(groups->items[i].fd);
		groups->items[i].fd = -1;
	}
}

/* ---- by sockets ---------------------------------------------------------- */

/*
 * Joins a group by a socket, so that the network knows of a member: attaching a queue
 * pair to the group does not tell the network.
 */
static int join_socket(const struct mmc_verbs_groups *groups,
		       struct mmc_verbs_group *group)
{
	const struct mmc_team_options *options = &groups->port->options;
	struct ip_mreqn request = {
		.imr_multiaddr.s_addr = htonl(group->address),
		.imr_address.s_addr = htonl(options->device.address),
	};

	group->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (group->fd < 0 ||
	    setsockopt(group->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request,
		       sizeof(request)) != 0)
		return mmc_verbs_groups_refused(groups, group, strerror(errno));
	mmc_verbs_gid_from_ipv4(group->gid.raw, group->address);
	group->lid = 0;
	group->lost = false;
	group->ah_attr =
		mmc_verbs_ah_attr(groups->port, group->gid.raw, 0,
				  (uint8_t)mmc_max_u32(options->ttl, 1));
	return 0;
}

int mmc_verbs_groups_join_by_socket(struct mmc_verbs_groups *groups)
{
	int rv = 0;

	if (!groups->port->options.device.ethernet)
		return mmc_verbs_groups_refused(
			groups, &groups->items[0],
			"on InfiniBand only the subnet manager adds members");
	for (uint32_t i = 0; i < groups->count && rv == 0; i++)
		rv = join_socket(groups, &groups->items[i]);
	return rv;
}

static int rejoin_socket(struct mmc_verbs_groups *groups,
			 struct mmc_verbs_group *group)
{
	int rv;

	close(group->fd);
	rv = join_socket(groups, group);
	group->renewed = rv == 0;
	return rv;
}

/* ---- by either means ----------------------------------------------------- */

/*
 * Joins by sockets after the connection manager has failed. If that fails, too, the
 * error's text has both reasons.
 */
static int fall_back(struct mmc_verbs_groups *groups)
{
	char first[256];
	char second[256];
	int rv;

	snprintf(first, sizeof(first), "%s", mmc_last_error());
	mmc_verbs_groups_leave(groups);
	rv = mmc_verbs_groups_join_by_socket(groups);
	if (rv == 0)
		return 0;
	snprintf(second, sizeof(second), "%s", mmc_last_error());
	mmc_error_set("%s; %s", first, second);
	return rv;
}

int mmc_verbs_groups_join(struct mmc_verbs_groups *groups)
{
	enum mmc_join how = (enum mmc_join)groups->port->options.join;
	int rv;

	if (how == MMC_JOIN_ATTACH)
		return mmc_verbs_groups_join_by_socket(groups);
	rv = mmc_verbs_groups_join_through_cm(groups);
	if (rv == 0 || how == MMC_JOIN_CM)
		return rv;
	return fall_back(groups);
}

int mmc_verbs_groups_rejoin(struct mmc_verbs_groups *groups,
			    struct mmc_verbs_group *group)
{
	return groups->id != NULL ? mmc_verbs_groups_rejoin_cm(groups, group)
				  : rejoin_socket(groups, group);
}
