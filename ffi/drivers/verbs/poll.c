/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "drivers/verbs/device.h"
#include "drivers/verbs/endpoint.h"
#include "drivers/verbs/status.h"
#include "support/bits.h"
#include "support/error.h"

/* The most completions that are taken from a queue in one go. */
#define COMPLETIONS 32

/* One in this many polls looks for events of the device. */
#define DEVICE_INTERVAL 1024

/*
 * The offset of the source's GID in a routing header. On RoCE over IPv4 the header is
 * 20 undefined bytes, followed by the IPv4 header, in which the source is at 12.
 */
#define GRH_SOURCE 8
#define GRH_IPV4_SOURCE (20 + 12)

/* Where the events of a poll go. */
struct sink {
	struct mmc_event *events;
	unsigned count; /* how many events there are */
	unsigned nmax;	/* how many there may be for now */
	bool any;	/* whether anything has completed, even without event */
};

/* Takes completions, at most as many as there is room for events. */
static int take_completions(struct mmc_verbs_completions *completions,
			    struct ibv_wc *found, struct sink *sink)
{
	unsigned wanted = mmc_min_u32(sink->nmax - sink->count, COMPLETIONS);
	int count = 0;

	if (wanted > 0)
		count = mmc_verbs_completions_take(completions, found, wanted);
	sink->any |= count > 0;
	return count;
}

/* ---- datagrams ----------------------------------------------------------- */

/* Returns the rank that has sent a datagram, by its routing header and queue pair. */
static uint32_t source_of(const struct mmc_verbs *verbs, const uint8_t *grh,
			  const struct ibv_wc *completion)
{
	uint8_t gid[MMC_VERBS_GID_BYTES];

	if (!(completion->wc_flags & IBV_WC_GRH) ||
	    completion->byte_len < MMC_VERBS_GRH_BYTES)
		return MMC_PEER_UNKNOWN;
	if (verbs->own.ethernet)
		mmc_verbs_gid_from_ipv4(gid,
					mmc_get_u32(grh + GRH_IPV4_SOURCE));
	else
		memcpy(gid, grh + GRH_SOURCE, sizeof(gid));
	return mmc_verbs_peers_find(&verbs->peers, gid, completion->src_qp);
}

/*
 * Notes that a peer is not silent, since a datagram from it has arrived. Otherwise two
 * partners that take each other for silent would never again use their connection, but
 * send each other datagrams only.
 */
static void hear_peer(struct mmc_verbs *verbs, uint32_t source, uint16_t lid)
{
	struct mmc_verbs_connection *connection;

	if (source == MMC_PEER_UNKNOWN)
		return;
	connection = verbs->ranks[source].connection;
	if (connection != NULL)
		connection->silent = false;
	if (lid != verbs->ranks[source].lid)
		mmc_verbs_follow_lid(verbs, source, lid);
}

/*
 * Reports a datagram that a queue has received, unless this rank has sent it itself.
 * After the endpoint has failed, nothing is reported: a broken device may have put the
 * payload anywhere.
 */
static void take_datagram(struct mmc_verbs *verbs,
			  struct mmc_verbs_queue *queue,
			  const struct ibv_wc *completion, struct sink *sink)
{
	struct mmc_verbs_ring *ring = &queue->ring;
	uint64_t slot = completion->wr_id;
	uint8_t *head = mmc_verbs_ring_head(ring, slot);
	uint32_t source = source_of(verbs, head, completion);
	uint32_t nbytes =
		mmc_max_u32(completion->byte_len, MMC_VERBS_GRH_BYTES) -
		MMC_VERBS_GRH_BYTES;
	uint8_t *body = mmc_verbs_ring_body(ring, slot);

	if (ring->placement != NULL)
		body = mmc_verbs_placement_take(verbs, queue, (uint32_t)slot,
						source,
						head + MMC_VERBS_GRH_BYTES,
						nbytes);
	if (source == verbs->own.rank || verbs->failure[0] != '\0') {
		mmc_verbs_ring_give(ring, slot);
		return;
	}
	hear_peer(verbs, source, completion->slid);
	mmc_verbs_ring_lend(ring, slot);
	sink->events[sink->count++] = (struct mmc_event){
		.kind = MMC_EVENT_DATAGRAM,
		.bytes = head + MMC_VERBS_GRH_BYTES,
		.body = body,
		.nbytes = nbytes,
		.source = source,
	};
}

/*
 * Handles a datagram that is another rank's offer to reconnect. Returns false if it is
 * not an offer but a datagram for the engine.
 */
static bool take_offer(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue,
		       const struct ibv_wc *completion)
{
	struct mmc_verbs_ring *ring = &queue->ring;
	uint64_t slot = completion->wr_id;
	const uint8_t *head = mmc_verbs_ring_head(ring, slot);
	uint8_t bytes[MMC_VERBS_OFFER_BYTES];
	uint32_t head_bytes = mmc_verbs_head_bytes(
		(enum mmc_checksum)verbs->port.options.checksum);

	_Static_assert(MMC_VERBS_OFFER_BYTES >=
			       MMC_HEADER_BYTES + MMC_CRC_BYTES,
		       "an offer fills the place of a header");
	if ((completion->wc_flags & IBV_WC_WITH_IMM) ||
	    completion->byte_len != MMC_VERBS_GRH_BYTES + sizeof(bytes))
		return false;
	/* A receive's head takes as many bytes as a header has, its body the rest. */
	memcpy(bytes, head + MMC_VERBS_GRH_BYTES, head_bytes);
	memcpy(bytes + head_bytes, mmc_verbs_ring_body(ring, slot),
	       sizeof(bytes) - head_bytes);
	/* An event of the connection's last incarnation must not end the next one. */
	mmc_verbs_watch_device(verbs);
	if (!mmc_verbs_reconnect_take(verbs, source_of(verbs, head, completion),
				      bytes, sizeof(bytes)))
		return false;
	mmc_verbs_ring_give(ring, slot);
	return true;
}

/* Reports what a queue has received, as far as there is room. */
static void poll_queue(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue,
		       struct sink *sink)
{
	struct ibv_wc found[COMPLETIONS];
	int count;

	if (queue->down)
		return;
	do {
		count = take_completions(&queue->received, found, sink);
		for (int i = 0; i < count; i++)
			if (found[i].status != IBV_WC_SUCCESS)
				mmc_verbs_break_queue(verbs, queue,
						      found[i].status);
			else if (queue != &verbs->unicast ||
				 !take_offer(verbs, queue, &found[i]))
				take_datagram(verbs, queue, &found[i], sink);
		mmc_verbs_ring_post(&queue->ring);
	} while (count > 0 && !queue->down);
	if (count < 0)
		mmc_verbs_break_queue(verbs, queue, IBV_WC_GENERAL_ERR);
}

/*
 * Reports what the subgroups' queues have received, until they are empty or there are
 * `nmax` events. A source sends its chunks to the groups in turn, so the queues are
 * polled in turn, too, a few chunks at a time. If one queue got ahead, the chunks in
 * the others would look lost.
 */
static void poll_groups(struct mmc_verbs *verbs, struct sink *sink,
			unsigned nmax)
{
	uint32_t count = verbs->port.options.subgroups;
	/* So each queue has about four turns in a poll. */
	unsigned share = mmc_max_u32(nmax / (4 * count), 1);
	uint32_t nempty = 0; /* queues in a row that gave less than a share */

	while (nempty < count && sink->count < nmax) {
		sink->nmax = mmc_min_u32(sink->count + share, nmax);
		poll_queue(verbs, &verbs->queues[verbs->next_queue], sink);
		nempty = sink->count < sink->nmax ? nempty + 1 : 0;
		verbs->next_queue = (verbs->next_queue + 1) % count;
	}
}

/* ---- connections --------------------------------------------------------- */

/* Handles the completion of a receive that the connections share. */
static void take_message(struct mmc_verbs *verbs,
			 const struct ibv_wc *completion, struct sink *sink)
{
	struct mmc_verbs_connections *connections = &verbs->connections;
	struct mmc_verbs_connection *connection =
		mmc_verbs_connection_find(connections, completion->qp_num);

	if (completion->status != IBV_WC_SUCCESS) {
		mmc_verbs_ring_give(&connections->ring, completion->wr_id);
		if (connection != NULL)
			mmc_verbs_reads_break(&verbs->reads, connections,
					      connection, completion->status);
		return;
	}
	if (connection != NULL) {
		connection->silent = false;
		connection->proven = true;
	}
	mmc_verbs_ring_lend(&connections->ring, completion->wr_id);
	sink->events[sink->count++] = (struct mmc_event){
		.kind = MMC_EVENT_DATAGRAM,
		.bytes = mmc_verbs_ring_head(&connections->ring,
					     completion->wr_id),
		.nbytes = completion->byte_len,
		.source = connection != NULL ? connection->peer
					     : MMC_PEER_UNKNOWN,
	};
}

/* Reports messages of connections, reads that have ended, and peers that exist. */
static void poll_connections(struct mmc_verbs *verbs, struct sink *sink)
{
	struct mmc_verbs_connections *connections = &verbs->connections;
	struct ibv_wc found[COMPLETIONS];
	int count;

	if (connections->count == 0)
		return;
	sink->any |= mmc_verbs_reads_reap(&verbs->reads, connections);
	do {
		count = take_completions(&connections->received, found, sink);
		for (int i = 0; i < count; i++)
			take_message(verbs, &found[i], sink);
		mmc_verbs_ring_post(&connections->ring);
	} while (count > 0);
	if (count < 0)
		mmc_verbs_fail(verbs, "the connections' completion queue: %s",
			       mmc_ibv.wc_status_str(IBV_WC_GENERAL_ERR));
	while (sink->count < sink->nmax &&
	       mmc_verbs_reads_take(&verbs->reads, &sink->events[sink->count]))
		sink->count++;
	while (sink->count < sink->nmax &&
	       mmc_verbs_inquiries_take(connections,
					&sink->events[sink->count]))
		sink->count++;
}

/* ---- what is broken ------------------------------------------------------ */

/*
 * Returns whether `status` is the fault of the peer, as far as can be told, and not
 * that of this rank's device.
 */
static bool is_of_peer(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_LOC_ACCESS_ERR: /* the peer has read memory without right */
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return true;
	default:
		return mmc_verbs_is_silence(status);
	}
}

/* Reports that a connection is broken. */
static void tell_connection(struct mmc_verbs *verbs,
			    struct mmc_verbs_connection *connection,
			    struct sink *sink)
{
	connection->link = MMC_VERBS_LINK_TOLD;
	verbs->connections.nbroken--;
	mmc_error_set("%s: queue pair %#x to rank %u: %s",
		      verbs->port.options.device.name, connection->qp->qp_num,
		      connection->peer,
		      mmc_ibv.wc_status_str(connection->status));
	sink->events[sink->count++] = (struct mmc_event){
		.kind = MMC_EVENT_BROKEN,
		.source = is_of_peer(connection->status) ? connection->peer
							 : MMC_PEER_NONE,
		.error = mmc_verbs_is_silence(connection->status)
				 ? -MMC_ENOANSWER
				 : -MMC_EIO,
	};
}

/*
 * Reports one failure, if there is any. Each poll reports only one, since only one
 * error has a text at a time.
 */
static void tell_broken(struct mmc_verbs *verbs, struct sink *sink)
{
	struct mmc_verbs_connection *connection = verbs->connections.items;

	if (sink->count == sink->nmax)
		return;
	if (verbs->failure[0] != '\0' && !verbs->told) {
		verbs->told = true;
		mmc_error_set("%s", verbs->failure);
		sink->events[sink->count++] = (struct mmc_event){
			.kind = MMC_EVENT_BROKEN,
			.source = MMC_PEER_NONE,
			.error = -MMC_EIO,
		};
	} else if (verbs->connections.nbroken > 0) {
		while (connection->link != MMC_VERBS_LINK_BROKEN)
			connection++;
		tell_connection(verbs, connection, sink);
	}
}

int mmc_verbs_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		   unsigned nmax)
{
	struct mmc_verbs *verbs = mmc_verbs_of(endpoint);
	/* Half of the room is left to the groups. */
	struct sink sink = { .events = events, .nmax = (nmax + 1) / 2 };

	if (verbs->npolls++ % DEVICE_INTERVAL == 0)
		mmc_verbs_watch_device(verbs);
	mmc_verbs_reads_reuse(&verbs->reads);
	if (verbs->connections.count > 0)
		mmc_verbs_ring_reuse(&verbs->connections.ring);
	mmc_verbs_ring_reuse(&verbs->unicast.ring);
	mmc_verbs_placement_resume(verbs);
	for (uint32_t i = 0; i < verbs->port.options.subgroups; i++)
		mmc_verbs_ring_reuse(&verbs->queues[i].ring);

	poll_connections(verbs, &sink);
	mmc_verbs_reconnect_poll(verbs);
	mmc_verbs_recover_poll(verbs);
	tell_broken(verbs, &sink);
	poll_queue(verbs, &verbs->unicast, &sink);
	poll_groups(verbs, &sink, nmax);
	sink.count += mmc_verbs_placement_poll(verbs, events + sink.count,
					       nmax - sink.count);
	verbs->endpoint.evacuated = verbs->placement.evacuated;
	if (sink.any)
		verbs->armed = false;
	return (int)sink.count;
}
