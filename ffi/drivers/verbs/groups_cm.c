/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "drivers/verbs/groups.h"
#include "support/bits.h"
#include "support/error.h"

static struct sockaddr_in ipv4_address(uint32_t address)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(address),
	};
}

/*
 * Opens a connection manager's id that is bound to the port's network interface.
 * Returns 0 or -MMC_EIO, with the reason set.
 */
static int open_id(struct mmc_verbs_groups *groups)
{
	const struct mmc_device *device = &groups->port->options.device;
	struct sockaddr_in own = ipv4_address(device->address);
	int flags;

	groups->channel = mmc_cm.create_event_channel();
	if (groups->channel == NULL)
		return mmc_verbs_explain(groups->port,
					 "open the connection manager", errno);
	flags = fcntl(groups->channel->fd, F_GETFL);
	if (flags < 0 ||
	    fcntl(groups->channel->fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
	    mmc_cm.create_id(groups->channel, &groups->id, NULL, RDMA_PS_UDP) !=
		    0 ||
	    mmc_cm.bind_addr(groups->id, (struct sockaddr *)&own) != 0)
		return mmc_verbs_explain(
			groups->port, "bind to the interface's address", errno);
	if (groups->id->verbs != NULL &&
	    strcmp(mmc_ibv.get_device_name(groups->id->verbs->device),
		   device->name) == 0 &&
	    groups->id->port_num == device->port)
		return 0;
	mmc_error_set("%s: the address of %s belongs to another device",
		      device->name, device->interface);
	return -MMC_EIO;
}

/* Adopts the address that the fabric has given a group. */
static void adopt(struct mmc_verbs_groups *groups,
		  struct mmc_verbs_group *group, const struct ibv_ah_attr *said)
{
	const struct mmc_team_options *options = &groups->port->options;

	group->gid = said->grh.dgid;
	group->lid = said->dlid;
	group->ah_attr = *said;
	group->ah_attr.grh.traffic_class = (uint8_t)options->traffic_class;
	if (options->device.ethernet) {
		group->ah_attr.sl = (uint8_t)options->service_level;
		group->ah_attr.grh.hop_limit =
			(uint8_t)mmc_max_u32(options->ttl, 1);
	}
}

/* Takes the answer to a request to join, or the end of a membership. */
static void take_answer(struct mmc_verbs_groups *groups,
			struct mmc_verbs_group *group,
			const struct rdma_cm_event *event, uint32_t *nlost)
{
	if (event->event == RDMA_CM_EVENT_MULTICAST_JOIN) {
		adopt(groups, group, &event->param.ud.ah_attr);
		group->renewed = true;
		group->lost = false;
		return;
	}
	/* A member also gets this event if its port was down, or has a new LID. */
	mmc_verbs_groups_refused(groups, group, strerror(-event->status));
	group->renewed = false;
	group->lost = true;
	++*nlost;
}

bool mmc_verbs_groups_hear(struct mmc_verbs_groups *groups, uint32_t *nlost)
{
	struct rdma_cm_event *event;
	bool any = false;

	while (groups->channel != NULL &&
	       mmc_cm.get_cm_event(groups->channel, &event) == 0) {
		if (event->event == RDMA_CM_EVENT_MULTICAST_JOIN ||
		    event->event == RDMA_CM_EVENT_MULTICAST_ERROR) {
			take_answer(groups,
				    (struct mmc_verbs_group *)
					    event->param.ud.private_data,
				    event, nlost);
			any = true;
		}
		mmc_cm.ack_cm_event(event);
	}
	return any;
}

/* Returns in how many groups the fabric has made this rank a member. */
static uint32_t count_joined(const struct mmc_verbs_groups *groups)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < groups->count; i++)
		count += groups->items[i].renewed;
	return count;
}

/* Waits until this rank is a member of all groups. Returns 0 or -MMC_EIO. */
static int await_all(struct mmc_verbs_groups *groups)
{
	struct pollfd watched = {
		.fd = groups->channel->fd,
		.events = POLLIN,
	};
	uint64_t until_ns = mmc_verbs_clock_ns() + MMC_VERBS_JOIN_NS;
	uint32_t nlost = 0;

	while (nlost == 0 && count_joined(groups) < groups->count) {
		uint64_t now_ns = mmc_verbs_clock_ns();

		if (now_ns >= until_ns)
			return mmc_verbs_groups_refused(
				groups, &groups->items[0],
				"the fabric has not answered for some of the "
				"groups");
		poll(&watched, 1, (int)((until_ns - now_ns) / MMC_MS_NS + 1));
		mmc_verbs_groups_hear(groups, &nlost);
	}
	return nlost == 0 ? 0 : -MMC_EIO;
}

/* Asks to join a group. Returns 0, or -MMC_EIO if that fails at once. */
static int ask(struct mmc_verbs_groups *groups, struct mmc_verbs_group *group)
{
	struct sockaddr_in address = ipv4_address(group->address);

	if (mmc_cm.join_multicast(groups->id, (struct sockaddr *)&address,
				  group) != 0)
		return mmc_verbs_groups_refused(groups, group, strerror(errno));
	group->asked = true;
	return 0;
}

static void leave(struct mmc_verbs_groups *groups,
		  struct mmc_verbs_group *group)
{
	struct sockaddr_in address = ipv4_address(group->address);

	if (group->asked)
		mmc_cm.leave_multicast(groups->id, (struct sockaddr *)&address);
	group->asked = false;
}

int mmc_verbs_groups_join_through_cm(struct mmc_verbs_groups *groups)
{
	int rv = open_id(groups);

	for (uint32_t i = 0; i < groups->count && rv == 0; i++)
		rv = ask(groups, &groups->items[i]);
	return rv == 0 ? await_all(groups) : rv;
}

int mmc_verbs_groups_rejoin_cm(struct mmc_verbs_groups *groups,
			       struct mmc_verbs_group *group)
{
	leave(groups, group);
	group->renewed = false;
	return ask(groups, group);
}

void mmc_verbs_groups_leave_cm(struct mmc_verbs_groups *groups)
{
	for (uint32_t i = 0; i < groups->count; i++)
		leave(groups, &groups->items[i]);
	if (groups->id != NULL)
		mmc_cm.destroy_id(groups->id);
	if (groups->channel != NULL)
		mmc_cm.destroy_event_channel(groups->channel);
	groups->id = NULL;
	groups->channel = NULL;
}
