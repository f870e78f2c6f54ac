/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/connections.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "drivers/verbs/status.h"
#include "drivers/verbs/windows.h"
#include "support/bits.h"

/* The maximum number of control messages that may be on their way to a peer. */
#define NSLOTS 16

/*
 * The maximum number of requests on a connection: messages, reads, one inquiry, and one
 * that binds a window.
 */
#define NSENDS (NSLOTS + MMC_VERBS_READS_MAX + 2)

/* The number of receives that are posted for each partner. */
#define RECEIVES_PER_PARTNER 32
/* The minimum number of receives that are posted, however few partners there are. */
#define RECEIVES_MIN 64

/* A packet sequence number (PSN) has 24 bits. */
#define PSN_MASK 0xffffff

/*
 * The adapter sends an unanswered packet again after 4.096 us * 2^exponent: 17 ms for
 * EXPONENT_MIN, and 134 ms for EXPONENT_MAX. The adapter may wait up to four times as
 * long (IBTA 9.7.6.1.3). With less than 17 ms, a busy machine would seem not to answer.
 * After RETRIES repetitions the adapter gives up. RETRIES is 6, because Soft-RoCE takes
 * the maximum, 7, to mean "for ever". RETRY_NS_MAX() is the longest time from the first
 * attempt until the adapter gives up.
 */
#define EXPONENT_MIN 12
#define EXPONENT_MAX 15
#define EXPONENT_UNIT_NS UINT64_C(4096)
#define RETRIES 6
#define RETRY_NS_MAX(exponent)                                                 \
	(4 * (RETRIES + 1) * (EXPONENT_UNIT_NS << (exponent)))

/*
 * If the peer has no receive posted, it is "receiver not ready" (RNR), and the adapter
 * tries again every 0.64 ms, which is code 12 of the RNR timer. It does so for ever: a
 * stopped process posts no receives, but it still exists.
 */
#define RNR_TIMER 12
#define RNR_RETRIES_ENDLESS 7

/* The first half of a GID identifies the InfiniBand subnet. */
#define GID_PREFIX_BYTES 8

/*
 * Creates what all connections share: the completion queues, the receive queue and the
 * ring of that queue. Returns 0 or an error, with the reason set.
 */
static int create_shared(struct mmc_verbs_connections *connections,
			 const struct mmc_verbs_port *port,
			 struct ibv_comp_channel *channel)
{
	uint32_t nreceives = mmc_max_u32(
		RECEIVES_PER_PARTNER * connections->count, RECEIVES_MIN);
	uint32_t nsends = connections->count * NSENDS;
	struct ibv_srq_init_attr attributes = {
		.attr = { .max_wr = nreceives, .max_sge = 1 },
	};
	int rv;

	connections->received.queue = mmc_ibv.create_cq(
		port->context, (int)nreceives, NULL, channel, 0);
	connections->send_cq =
		mmc_ibv.create_cq(port->context, (int)nsends, NULL, channel, 0);
	if (connections->received.queue == NULL || connections->send_cq == NULL)
		return mmc_verbs_explain(port, "create a completion queue",
					 errno);
	connections->srq = mmc_ibv.create_srq(port->pd, &attributes);
	if (connections->srq == NULL)
		return mmc_verbs_explain(port, "create a shared receive queue",
					 errno);
	connections->ring.srq = connections->srq;
	rv = mmc_verbs_ring_init(&connections->ring, port, nreceives,
				 MMC_VERBS_MESSAGE_BYTES_MAX, 0);
	if (rv == 0)
		mmc_verbs_ring_post(&connections->ring);
	return rv;
}

/* Draws a random PSN for this end. Returns false, with errno set, if that fails. */
static bool draw_psn(struct mmc_verbs_connection *connection)
{
	if (getrandom(&connection->psn, sizeof(connection->psn), 0) < 0)
		return false;
	connection->psn &= PSN_MASK;
	return true;
}

/*
 * Creates the queue pair and the slots of one connection. Returns 0 or an error, with
 * the reason set.
 */
static int create(struct mmc_verbs_connections *connections,
		  struct mmc_verbs_connection *connection,
		  const struct mmc_verbs_port *port)
{
	struct ibv_qp_init_attr attributes = {
		.send_cq = connections->send_cq,
		.recv_cq = connections->received.queue,
		.srq = connections->srq,
		.cap = {
			.max_send_wr = NSENDS,
			.max_send_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};

	if (!draw_psn(connection))
		return mmc_verbs_explain(port, "draw a random number", errno);
	connection->qp = mmc_ibv.create_qp(port->pd, &attributes);
	if (connection->qp == NULL)
		return mmc_verbs_explain(port, "create a connection", errno);
	return mmc_verbs_slots_init(&connection->slots, port, NSLOTS,
				    MMC_VERBS_MESSAGE_BYTES_MAX);
}

int mmc_verbs_connections_init(struct mmc_verbs_connections *connections,
			       const struct mmc_verbs_port *port,
			       struct ibv_comp_channel *channel)
{
	const struct mmc_team_options *options = &port->options;
	uint32_t partners[MMC_VERBS_PARTNERS_MAX];
	uint32_t count =
		mmc_verbs_partners(options->rank, options->nranks, partners);
	int rv;

	connections->port = port;
	if (count == 0)
		return 0;
	connections->items = calloc(count, sizeof(*connections->items));
	if (connections->items == NULL)
		return -MMC_ENOMEM;
	connections->count = count;
	rv = create_shared(connections, port, channel);
	for (uint32_t i = 0; i < count && rv == 0; i++) {
		connections->items[i].peer = partners[i];
		rv = create(connections, &connections->items[i], port);
	}
	return rv;
}

void mmc_verbs_connections_destroy(struct mmc_verbs_connections *connections)
{
	for (uint32_t i = 0; i < connections->count; i++) {
		mmc_verbs_windows_end(&connections->items[i]);
		if (connections->items[i].qp != NULL)
			mmc_ibv.destroy_qp(connections->items[i].qp);
		mmc_verbs_slots_destroy(&connections->items[i].slots);
	}
	if (connections->srq != NULL)
		mmc_ibv.destroy_srq(connections->srq);
	if (connections->send_cq != NULL)
		mmc_ibv.destroy_cq(connections->send_cq);
	if (connections->received.queue != NULL)
		mmc_ibv.destroy_cq(connections->received.queue);
	mmc_verbs_ring_destroy(&connections->ring);
	free(connections->items);
}

/* ---- connecting ---------------------------------------------------------- */

/*
 * Moves a queue pair from RESET to INIT, and allows the peer to read registered memory,
 * but not to write to it. Returns 0 or an errno value.
 */
static int to_init(const struct mmc_verbs_connection *connection,
		   const struct mmc_verbs_port *port)
{
	struct ibv_qp_attr attributes = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = (uint16_t)port->options.pkey_index,
		.port_num = (uint8_t)port->options.device.port,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
	};

	return mmc_ibv.modify_qp(connection->qp, &attributes,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					 IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/*
 * Moves a queue pair from INIT to RTR (ready to receive), and ties it to the peer's
 * end. Returns 0 or an errno value.
 */
static int to_receive(const struct mmc_verbs_connection *connection,
		      const struct mmc_verbs_port *port)
{
	const struct mmc_verbs_peer_port *peer_port = &connection->peer_port;
	struct ibv_qp_attr attributes = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = mmc_verbs_ah_attr(port, peer_port->gid,
					     peer_port->lid,
					     MMC_VERBS_HOPS_MAX),
		.path_mtu = (enum ibv_mtu)peer_port->mtu,
		.dest_qp_num = connection->peer_end.qpn,
		.rq_psn = connection->peer_end.psn,
		.max_dest_rd_atomic = (uint8_t)port->reads_max,
		.min_rnr_timer = RNR_TIMER,
	};

	/* Within one InfiniBand subnet, packets need no routing header. */
	if (!peer_port->ethernet &&
	    memcmp(peer_port->gid, port->options.device.gid,
		   GID_PREFIX_BYTES) == 0)
		attributes.ah_attr.is_global = 0;
	return mmc_ibv.modify_qp(connection->qp, &attributes,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					 IBV_QP_MAX_DEST_RD_ATOMIC |
					 IBV_QP_MIN_RNR_TIMER);
}

/*
 * Returns the exponent for a peer that may be silent for `timeout_ns`. If `timeout_ns`
 * is 0, the peer may be silent for ever, and the exponent is EXPONENT_MAX. Otherwise
 * the adapter may spend mmc_verbs_retrying_ns() on retries. The exponent is then the
 * largest with which the adapter is sure to give up within that time, but at least
 * EXPONENT_MIN and at most EXPONENT_MAX.
 */
static uint8_t exponent_of(uint64_t timeout_ns)
{
	uint8_t exponent = EXPONENT_MAX;

	while (timeout_ns > 0 && exponent > EXPONENT_MIN &&
	       RETRY_NS_MAX(exponent) > mmc_verbs_retrying_ns(timeout_ns))
		exponent--;
	return exponent;
}

/* Moves a queue pair from RTR to RTS (ready to send). Returns 0 or an errno value. */
static int to_send(const struct mmc_verbs_connection *connection,
		   const struct mmc_verbs_port *port)
{
	struct ibv_qp_attr attributes = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = connection->psn,
		.timeout = exponent_of(port->options.timeout_ns),
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_RETRIES_ENDLESS,
		.max_rd_atomic = (uint8_t)connection->reads_max,
	};

	return mmc_ibv.modify_qp(connection->qp, &attributes,
				 IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					 IBV_QP_MAX_QP_RD_ATOMIC);
}

int mmc_verbs_connection_bring_up(struct mmc_verbs_connection *connection,
				  const struct mmc_verbs_port *port)
{
	int error = to_init(connection, port);

	if (error == 0)
		error = to_receive(connection, port);
	if (error == 0)
		error = to_send(connection, port);
	if (error == 0) {
		connection->link = MMC_VERBS_LINK_UP;
		connection->proven = false;
	}
	return error;
}

int mmc_verbs_connection_start(struct mmc_verbs_connection *connection,
			       const struct mmc_verbs_port *port,
			       const struct mmc_verbs_address *address,
			       const struct mmc_verbs_end *end)
{
	struct mmc_verbs_peer_port *peer_port = &connection->peer_port;
	char what[64];
	int error;

	connection->reads_max =
		mmc_min_u32(port->reads_max, address->reads_max);
	memcpy(peer_port->gid, address->gid, sizeof(peer_port->gid));
	peer_port->lid = address->lid;
	peer_port->mtu = (uint8_t)mmc_min_u32(port->mtu, address->mtu);
	peer_port->ethernet = address->ethernet;
	connection->peer_end = *end;
	connection->first_psns[0] = connection->psn;
	connection->first_psns[1] = end->psn;
	error = mmc_verbs_connection_bring_up(connection, port);
	if (error == 0)
		return 0;
	snprintf(what, sizeof(what), "connect to rank %u", connection->peer);
	return mmc_verbs_explain(port, what, error);
}

struct mmc_verbs_connection *
mmc_verbs_connection_find(const struct mmc_verbs_connections *connections,
			  uint32_t qpn)
{
	for (uint32_t i = 0; i < connections->count; i++)
		if (connections->items[i].qp->qp_num == qpn)
			return &connections->items[i];
	return NULL;
}

/* ---- going down, and breaking -------------------------------------------- */

bool mmc_verbs_connection_reset(struct mmc_verbs_connection *connection)
{
	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_RESET };

	/* Not every device can reset a queue pair to which windows are bound. */
	mmc_verbs_windows_end(connection);
	if (!draw_psn(connection) ||
	    mmc_ibv.modify_qp(connection->qp, &attributes, IBV_QP_STATE) != 0)
		return false;
	/* The reset has dropped what the slots held, so all of them are free again. */
	connection->slots.nsent = connection->slots.nfilled;
	connection->nreads = 0;
	connection->inquiring = false;
	connection->silent = false;
	return true;
}

/*
 * Takes a connection down, so that it can come up again. Returns false if it can never
 * come up again: either the option timeout_ns is 0, which leaves no time in which to
 * reconnect, or the reset fails.
 */
static bool take_down(struct mmc_verbs_connections *connections,
		      struct mmc_verbs_connection *connection)
{
	uint64_t now_ns = mmc_verbs_clock_ns();

	if (connections->port->options.timeout_ns == 0 ||
	    !mmc_verbs_connection_reset(connection))
		return false;
	/*
	 * A connection that came up again but then carried nothing was never really
	 * up, so `down_ns` keeps the time at which it went down before. The first time
	 * that a connection goes down, there is no such time.
	 */
	if (connection->proven || connection->incarnation == 0)
		connection->down_ns = now_ns;
	connection->link = MMC_VERBS_LINK_DOWN;
	connection->incarnation++;
	connection->offer_ns = now_ns;
	connection->pause_ns = 0;
	connections->ndown++;
	return true;
}

void mmc_verbs_connection_on_error(struct mmc_verbs_connections *connections,
				   struct mmc_verbs_connection *connection,
				   enum ibv_wc_status status)
{
	if (connection->link != MMC_VERBS_LINK_UP)
		return;
	connection->status = status;
	if ((mmc_verbs_is_transient(status) || mmc_verbs_lacks_right(status)) &&
	    take_down(connections, connection))
		return;
	connection->link = MMC_VERBS_LINK_BROKEN;
	connections->nbroken++;
}

void mmc_verbs_connection_give_up(struct mmc_verbs_connections *connections,
				  struct mmc_verbs_connection *connection)
{
	connection->link = MMC_VERBS_LINK_BROKEN;
	connections->ndown--;
	connections->nbroken++;
}

void mmc_verbs_connection_vouch(struct mmc_verbs_connections *connections,
				struct mmc_verbs_connection *connection)
{
	/* A peer counts once, however often it is vouched for before it is reported. */
	connections->nvouched += !connection->vouched;
	connection->vouched = true;
}

/* Only an answered inquiry ends here. If one fails, its connection does not stay up. */
void mmc_verbs_inquiry_ended(struct mmc_verbs_connections *connections,
			     struct mmc_verbs_connection *connection)
{
	connection->inquiring = false;
	mmc_verbs_connection_vouch(connections, connection);
}
