/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recovery after this rank's port has come back, or the subnet manager has announced a
 * change. The kernel may have ended memberships in groups, switches may have forgotten
 * members, and ports may have new addresses. So queues that are down are started again,
 * address handles are made again, and groups are joined again.
 */
#include <string.h>

#include "drivers/verbs/endpoint.h"
#include "support/bits.h"

/* The pause until the next attempt, if the fabric or a queue has refused. */
#define AGAIN_NS (500 * MMC_MS_NS)

void mmc_verbs_recover_soon(struct mmc_verbs *verbs, bool ahs_stale)
{
	verbs->recover_ns = mmc_verbs_clock_ns();
	verbs->ahs_stale |= ahs_stale;
	for (uint32_t i = 0; i < verbs->groups.count; i++)
		verbs->groups.items[i].lost = true;
}

void mmc_verbs_recover_listen(struct mmc_verbs *verbs)
{
	uint32_t nlost = 0;
	uint64_t now_ns;

	if (!mmc_verbs_groups_hear(&verbs->groups, &nlost))
		return;
	now_ns = mmc_verbs_clock_ns();
	if (nlost > 0)
		now_ns += AGAIN_NS;
	verbs->recover_ns = mmc_min_u64(verbs->recover_ns, now_ns);
}

uint64_t mmc_verbs_recover_deadline_ns(const struct mmc_verbs *verbs)
{
	return verbs->recover_ns;
}

/* ---- the port and addresses ---------------------------------------------- */

/*
 * Looks up the LID and the index of the GID that the port has now. Returns whether the
 * port is active.
 */
static bool refresh_port(struct mmc_verbs *verbs)
{
	struct mmc_device *device = &verbs->port.options.device;
	struct ibv_port_attr attributes;
	struct ibv_gid_entry entry;

	if (!mmc_verbs_port_active(&verbs->port, &attributes))
		return false;
	if (!verbs->own.ethernet && attributes.lid != 0) {
		device->lid = attributes.lid;
		verbs->own.lid = attributes.lid;
	}
	for (uint32_t i = 0; i < (uint32_t)attributes.gid_tbl_len; i++) {
		/* Search from the old index on. */
		uint32_t index = (device->gid_index + i) %
				 (uint32_t)attributes.gid_tbl_len;

		if (mmc_ibv.query_gid_ex(verbs->port.context, device->port,
					 index, &entry, 0,
					 sizeof(entry)) == 0 &&
		    memcmp(entry.gid.raw, device->gid, sizeof(device->gid)) ==
			    0 &&
		    (!device->ethernet ||
		     entry.gid_type == IBV_GID_TYPE_ROCE_V2)) {
			device->gid_index = index;
			break;
		}
	}
	return true;
}

static void destroy_ah(struct mmc_verbs_rank *rank)
{
	if (rank->ah != NULL)
		mmc_ibv.destroy_ah(rank->ah);
	rank->ah = NULL;
	rank->retry_ns = 0;
}

/* Waits as mmc_verbs_settle() does for all queues that send to single ranks. */
static bool settle_unicast(struct mmc_verbs *verbs)
{
	return mmc_verbs_settle(verbs, &verbs->unicast) &&
	       (verbs->port.options.pair == 0 ||
		mmc_verbs_settle(verbs, &verbs->queues[0]));
}

/*
 * Destroys the address handles of all ranks; they are made again when needed. Returns
 * false, and destroys none, if datagrams that use them have not left.
 */
static bool destroy_ahs(struct mmc_verbs *verbs)
{
	if (!settle_unicast(verbs))
		return false;
	for (uint32_t i = 0; i < verbs->port.options.nranks; i++)
		destroy_ah(&verbs->ranks[i]);
	return true;
}

void mmc_verbs_follow_lid(struct mmc_verbs *verbs, uint32_t peer, uint16_t lid)
{
	struct mmc_verbs_rank *rank = &verbs->ranks[peer];

	if (verbs->own.ethernet || lid == 0 || lid == rank->lid ||
	    !settle_unicast(verbs))
		return;
	rank->lid = lid;
	destroy_ah(rank);
}

/* ---- groups -------------------------------------------------------------- */

/*
 * Lets a subgroup's queue send to the address that its group has now, and receive from
 * it. Returns whether that has succeeded.
 */
static bool attach_again(struct mmc_verbs *verbs, uint32_t subgroup)
{
	struct mmc_verbs_group *group = &verbs->groups.items[subgroup];
	struct mmc_verbs_queue *queue = &verbs->queues[subgroup];
	struct ibv_ah *ah;

	if (!mmc_verbs_settle(verbs, queue))
		return false;
	ah = mmc_ibv.create_ah(verbs->port.pd, &group->ah_attr);
	if (ah == NULL)
		return false;
	mmc_ibv.destroy_ah(verbs->group_ahs[subgroup]);
	verbs->group_ahs[subgroup] = ah;
	if (memcmp(&group->gid, &group->attached_gid, sizeof(group->gid)) ==
		    0 &&
	    group->lid == group->attached_lid)
		return true;
	mmc_ibv.detach_mcast(queue->qp, &group->attached_gid,
			     group->attached_lid);
	if (mmc_ibv.attach_mcast(queue->qp, &group->gid, group->lid) != 0)
		return false;
	group->attached_gid = group->gid;
	group->attached_lid = group->lid;
	return true;
}

/* ---- queues -------------------------------------------------------------- */

/*
 * Restarts a queue that is down, if the port is `active`; fails the endpoint if the
 * queue has been down for too long. Returns whether the queue works now.
 */
static bool restart(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue,
		    bool active)
{
	uint64_t patience_ns =
		mmc_verbs_patience_ns(verbs->endpoint.timeout_ns);

	if (!queue->down)
		return true;
	if (mmc_verbs_clock_ns() - queue->down_ns >= patience_ns)
		mmc_verbs_fail_queue(verbs, queue);
	else if (active && mmc_verbs_queue_flush(queue, &verbs->port) == 0)
		return true;
	return false;
}

/* Restarts the queues that are down. Returns whether all queues work now. */
static bool restart_all(struct mmc_verbs *verbs, bool active)
{
	bool done = restart(verbs, &verbs->unicast, active);

	for (uint32_t i = 0; i < verbs->port.options.subgroups; i++)
		done = restart(verbs, &verbs->queues[i], active) && done;
	return done;
}

/* ---- all of it ----------------------------------------------------------- */

/* Moves the recovery of a group one step on. Returns whether that was the last step. */
static bool regain(struct mmc_verbs *verbs, uint32_t subgroup)
{
	struct mmc_verbs_group *group = &verbs->groups.items[subgroup];

	if (group->lost)
		group->lost = mmc_verbs_groups_rejoin(&verbs->groups, group) <
			      0;
	if (group->renewed && attach_again(verbs, subgroup)) {
		group->renewed = false;
		verbs->endpoint.rejoins++;
	}
	return !group->lost && !group->renewed;
}

void mmc_verbs_recover_poll(struct mmc_verbs *verbs)
{
	bool active;
	bool done;

	if (verbs->recover_ns == MMC_NEVER_NS ||
	    mmc_verbs_clock_ns() < verbs->recover_ns)
		return;
	active = refresh_port(verbs);
	done = restart_all(verbs, active) && active;
	if (done) {
		verbs->ahs_stale = verbs->ahs_stale && !destroy_ahs(verbs);
		for (uint32_t i = 0; i < verbs->groups.count; i++)
			done = regain(verbs, i) && done;
	}
	verbs->recover_ns = (done && !verbs->ahs_stale) ||
					    verbs->failure[0] != '\0'
				    ? MMC_NEVER_NS
				    : mmc_verbs_clock_ns() + AGAIN_NS;
}
