/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <string.h>

#include "drivers/verbs/device.h"
#include "drivers/verbs/endpoint.h"
#include "support/assert.h"
#include "support/bits.h"
#include "support/error.h"

/* The queue pair by which a parcel is sent, and the address to which it goes. */
struct route {
	struct mmc_verbs_queue *queue; /* NULL: over a connection */
	struct ibv_qp *qp;
	struct mmc_verbs_slots *slots;

	/* The target of a datagram: */
	struct ibv_ah *ah;
	uint32_t qpn;
};

/* The number of the target's queue pair in all multicasts. */
#define QPN_MULTICAST 0xffffff

/* Returns the route of a datagram that `queue` sends to this target. */
static struct route route_by(struct mmc_verbs_queue *queue, struct ibv_ah *ah,
			     uint32_t qpn)
{
	return (struct route){
		.queue = queue,
		.qp = queue->qp,
		.slots = &queue->slots,
		.ah = ah,
		.qpn = qpn,
	};
}

/* ---- the route ----------------------------------------------------------- */

/*
 * Returns whether a parcel can go over a peer's connection now. If not, it goes as a
 * unicast datagram, which may be lost: for example if the peer is stopped, so that the
 * connection's slots are all filled.
 *
 * Nothing goes over the connection to a silent peer. If the peer is stopped, it posts
 * no receives, and messages would use up those that it has posted. The next message
 * would then wait, and an inquiry behind that message would not be answered.
 */
static bool connection_takes(struct mmc_verbs *verbs,
			     const struct mmc_verbs_connection *connection,
			     const struct mmc_parcel *parcel)
{
	if (connection == NULL || connection->link != MMC_VERBS_LINK_UP ||
	    connection->silent || !parcel->control ||
	    parcel->head_bytes + parcel->body_bytes >
		    MMC_VERBS_MESSAGE_BYTES_MAX)
		return false;
	if (!mmc_verbs_slots_have_room(&connection->slots))
		mmc_verbs_reads_reap(&verbs->reads, &verbs->connections);
	return connection->link == MMC_VERBS_LINK_UP &&
	       mmc_verbs_slots_have_room(&connection->slots);
}

/*
 * Finds the route of a parcel. Returns false if the peer cannot be addressed; the
 * parcel is then lost.
 */
static bool find_route(struct mmc_verbs *verbs, const struct mmc_parcel *parcel,
		       struct route *route)
{
	struct mmc_verbs_rank *rank;

	if (parcel->peer == MMC_PEER_ALL && verbs->port.options.pair != 0) {
		rank = &verbs->ranks[1 - verbs->own.rank];
		if (!mmc_verbs_find_ah(verbs, rank))
			return false;
		*route = route_by(&verbs->queues[0], rank->ah, rank->data_qpn);
		return true;
	}
	if (parcel->peer == MMC_PEER_ALL) {
		uint32_t subgroup = parcel->subgroup;

		MMC_ASSERT(subgroup < verbs->port.options.subgroups);
		*route = route_by(&verbs->queues[subgroup],
				  verbs->group_ahs[subgroup], QPN_MULTICAST);
		return true;
	}
	MMC_ASSERT(parcel->peer < verbs->port.options.nranks);
	rank = &verbs->ranks[parcel->peer];
	if (connection_takes(verbs, rank->connection, parcel)) {
		*route = (struct route){
			.qp = rank->connection->qp,
			.slots = &rank->connection->slots,
		};
		return true;
	}
	if (!mmc_verbs_find_ah(verbs, rank))
		return false;
	*route = route_by(&verbs->unicast, rank->ah, rank->unicast_qpn);
	return true;
}

/* ---- sending ------------------------------------------------------------- */

/*
 * Waits until at most `nslots_max` datagrams of the queue have not left yet. Returns
 * false if that takes longer than MMC_VERBS_ROOM_NS, or the queue is down.
 */
static bool drain(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue,
		  uint32_t nslots_max)
{
	enum ibv_wc_status status;
	uint64_t until_ns = 0;

	if (queue->down)
		return false;
	while (mmc_verbs_slots_busy(&queue->slots) > nslots_max) {
		if (!mmc_verbs_queue_reap(queue, &status)) {
			mmc_verbs_break_queue(verbs, queue, status);
			return false;
		}
		if (mmc_verbs_slots_busy(&queue->slots) <= nslots_max)
			break;
		if (until_ns == 0)
			until_ns = mmc_verbs_clock_ns() + MMC_VERBS_ROOM_NS;
		else if (mmc_verbs_clock_ns() > until_ns)
			return false;
		/* Soft-RoCE needs a processor to send, and there may be only one. */
		sched_yield();
	}
	return true;
}

/*
 * Waits until all multicast has left, so that no control message overtakes it on
 * another queue pair. A record says how many chunks this rank has multicast: chunks
 * that the record overtakes would be taken for lost.
 */
static void wait_for_multicast(struct mmc_verbs *verbs)
{
	for (uint32_t i = 0; i < verbs->port.options.subgroups; i++)
		drain(verbs, &verbs->queues[i], 0);
}

/* Fills the next slot with a parcel. Returns the request that sends it by `route`. */
static struct ibv_send_wr *fill(const struct mmc_verbs *verbs,
				const struct route *route,
				const struct mmc_parcel *parcel)
{
	struct ibv_send_wr *request =
		mmc_verbs_slots_fill(route->slots, parcel);

	if (route->queue != NULL) {
		request->wr.ud.ah = route->ah;
		request->wr.ud.remote_qpn = route->qpn;
		request->wr.ud.remote_qkey = verbs->port.options.qkey;
	}
	return request;
}

/* Posts the requests from `first` on. Returns 0 or an error, with the reason set. */
static int post(const struct mmc_verbs *verbs, const struct route *route,
		struct ibv_send_wr *first)
{
	struct ibv_send_wr *refused = NULL;
	int error = ibv_post_send(route->qp, first, &refused);
	uint32_t nrefused = 0;

	if (error == 0)
		return 0;
	for (; refused != NULL; refused = refused->next)
		nrefused++;
	mmc_verbs_slots_unfill(route->slots, nrefused);
	return mmc_verbs_explain(&verbs->port, "send", error);
}

static int check_length(const struct mmc_verbs *verbs,
			const struct mmc_parcel *parcel)
{
	uint32_t mtu_bytes = mmc_verbs_mtu_bytes(verbs->port.mtu);

	if (parcel->head_bytes + parcel->body_bytes <= mtu_bytes)
		return 0;
	mmc_error_set("%s: a datagram of %u bytes does not fit into its MTU, "
		      "%u bytes",
		      verbs->port.options.device.name,
		      parcel->head_bytes + parcel->body_bytes, mtu_bytes);
	return -MMC_EINVAL;
}

/*
 * Sends the first of the parcels, up to one that goes by another queue pair or for
 * which there is no room. Writes to `ngone` how many were posted or are lost. Returns 0
 * or an error, with the reason set.
 */
static int send_run(struct mmc_verbs *verbs, const struct mmc_parcel *parcels,
		    unsigned nparcels, unsigned *ngone)
{
	struct ibv_send_wr *first = NULL;
	struct ibv_send_wr *last = NULL;
	struct ibv_send_wr **next = &first;
	struct route route, other;
	int rv;

	*ngone = 1;
	if (!find_route(verbs, parcels, &route))
		return 0;
	rv = route.queue != NULL ? check_length(verbs, parcels) : 0;
	if (rv < 0)
		return rv;
	if (route.queue != NULL &&
	    !drain(verbs, route.queue, route.slots->nslots - 1)) {
		*ngone = nparcels;
		return 0;
	}
	*ngone = 0;
	other = route;
	do {
		last = fill(verbs, &other, &parcels[*ngone]);
		*next = last;
		next = &last->next;
		++*ngone;
	} while (*ngone < nparcels && mmc_verbs_slots_have_room(route.slots) &&
		 check_length(verbs, &parcels[*ngone]) == 0 &&
		 find_route(verbs, &parcels[*ngone], &other) &&
		 other.slots == route.slots);
	if (route.queue != NULL)
		last->send_flags |= IBV_SEND_SIGNALED;
	rv = post(verbs, &route, first);
	/* The failure of a connection is reported when its requests complete. */
	return route.queue != NULL ? rv : 0;
}

uint32_t mmc_verbs_send_plugs(struct mmc_verbs *verbs,
			      struct mmc_verbs_queue *queue, uint32_t count)
{
	struct mmc_verbs_rank *self = &verbs->ranks[verbs->own.rank];
	const struct mmc_parcel nothing = { .head = self->gid };
	struct route route = route_by(queue, NULL, queue->qp->qp_num);
	struct ibv_send_wr *first = NULL;
	struct ibv_send_wr *last = NULL;
	struct ibv_send_wr **next = &first;
	enum ibv_wc_status status;
	uint32_t nsent = 0;

	if (count == 0 || queue->down || !mmc_verbs_find_ah(verbs, self) ||
	    !mmc_verbs_queue_reap(queue, &status))
		return 0;
	route.ah = self->ah;
	for (; nsent < count && mmc_verbs_slots_have_room(&queue->slots);
	     nsent++) {
		last = fill(verbs, &route, &nothing);
		last->num_sge = 0;
		*next = last;
		next = &last->next;
	}
	if (nsent == 0)
		return 0;
	last->send_flags |= IBV_SEND_SIGNALED;
	return post(verbs, &route, first) == 0 ? nsent : 0;
}

void mmc_verbs_tell(struct mmc_verbs *verbs, uint32_t peer,
		    const uint8_t *bytes, uint32_t nbytes)
{
	const struct mmc_parcel parcel = {
		.head = bytes,
		.head_bytes = nbytes,
		.peer = peer,
	};
	struct mmc_verbs_queue *queue = &verbs->unicast;
	struct mmc_verbs_rank *rank = &verbs->ranks[peer];
	struct ibv_send_wr *request;
	struct route route;

	if (!mmc_verbs_find_ah(verbs, rank) ||
	    !drain(verbs, queue, queue->slots.nslots - 1))
		return;
	route = route_by(queue, rank->ah, rank->unicast_qpn);
	request = fill(verbs, &route, &parcel);
	request->opcode = IBV_WR_SEND;
	request->send_flags |= IBV_SEND_SIGNALED;
	post(verbs, &route, request);
}

bool mmc_verbs_settle(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue)
{
	return drain(verbs, queue, 0);
}

int mmc_verbs_send(struct mmc_endpoint *endpoint,
		   const struct mmc_parcel *parcels, unsigned nparcels)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	/* A multicast overtakes no other if one queue pair sends them all. */
	bool in_order = nparcels > 0 && parcels->peer == MMC_PEER_ALL &&
			verbs->port.options.subgroups == 1;

	if (nparcels > 0 && parcels->control && !in_order)
		wait_for_multicast(verbs);
	while (nparcels > 0 && verbs->failure[0] == '\0') {
		unsigned ngone;
		int rv = send_run(verbs, parcels, nparcels, &ngone);

		if (rv < 0)
			return rv;
		parcels += ngone;
		nparcels -= ngone;
	}
	if (nparcels == 0)
		return 0;
	mmc_error_set("%s", verbs->failure);
	return -MMC_EIO;
}
