/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/reconnect.h"

#include <string.h>

#include "drivers/verbs/endpoint.h"
#include "support/bits.h"

#define TAG UINT32_C(0x6d6d634f) /* "mmcO" */

#define NUMBER_MAX 0xffffff
#define LID_MULTICAST 0xc000 /* the first LID that is a group's */

/* The first pause between two offers, and the longest. */
#define PAUSE_NS (10 * MMC_MS_NS)
#define PAUSE_NS_MAX (160 * MMC_MS_NS)

/* ---- as bytes ------------------------------------------------------------ */

void mmc_verbs_offer_encode(uint8_t *bytes, const struct mmc_verbs_offer *offer)
{
	mmc_put_u32(bytes, TAG);
	mmc_put_u32(bytes + 4, offer->keys[0]);
	mmc_put_u32(bytes + 8, offer->keys[1]);
	mmc_put_u32(bytes + 12, offer->epoch);
	mmc_put_u32(bytes + 16, offer->psn);
	mmc_put_u32(bytes + 20, (uint32_t)offer->lid << 16 | offer->taken);
}

bool mmc_verbs_offer_decode(struct mmc_verbs_offer *offer, const uint8_t *bytes,
			    uint32_t nbytes)
{
	struct mmc_verbs_offer read;
	uint32_t last;

	if (nbytes != MMC_VERBS_OFFER_BYTES || mmc_get_u32(bytes) != TAG)
		return false;
	last = mmc_get_u32(bytes + 20);
	read = (struct mmc_verbs_offer){
		.keys = { mmc_get_u32(bytes + 4), mmc_get_u32(bytes + 8) },
		.epoch = mmc_get_u32(bytes + 12),
		.psn = mmc_get_u32(bytes + 16),
		.lid = (uint16_t)(last >> 16),
		.taken = last & 1,
	};
	if (read.epoch == 0 || read.psn > NUMBER_MAX || (last & 0xfffe) != 0 ||
	    read.lid >= LID_MULTICAST)
		return false;
	*offer = read;
	return true;
}

/* ---- offering ------------------------------------------------------------ */

static void send_offer(struct mmc_verbs *verbs,
		       const struct mmc_verbs_connection *connection)
{
	const struct mmc_verbs_offer offer = {
		.keys = { connection->keys[0], connection->keys[1] },
		.epoch = connection->epoch,
		.psn = connection->psn,
		.lid = verbs->own.lid,
		.taken = connection->link == MMC_VERBS_LINK_UP,
	};
	uint8_t bytes[MMC_VERBS_OFFER_BYTES];

	mmc_verbs_offer_encode(bytes, &offer);
	mmc_verbs_tell(verbs, connection->peer, bytes, sizeof(bytes));
}

static uint64_t patience_end_ns(const struct mmc_verbs *verbs,
				const struct mmc_verbs_connection *connection)
{
	return connection->down_ns +
	       mmc_verbs_patience_ns(verbs->endpoint.timeout_ns);
}

/*
 * Gives a connection up. The peer is to blame only if this rank's own port is active.
 */
static void give_up(struct mmc_verbs *verbs,
		    struct mmc_verbs_connection *connection)
{
	if (!mmc_verbs_port_active(&verbs->port, NULL))
		mmc_verbs_fail(verbs, "port %u is down",
			       verbs->port.options.device.port);
	mmc_verbs_connection_give_up(&verbs->connections, connection);
}

void mmc_verbs_reconnect_poll(struct mmc_verbs *verbs)
{
	struct mmc_verbs_connections *connections = &verbs->connections;
	uint64_t now_ns;

	if (connections->ndown == 0)
		return;
	now_ns = mmc_verbs_clock_ns();
	for (uint32_t i = 0; i < connections->count; i++) {
		struct mmc_verbs_connection *connection =
			&connections->items[i];

		if (connection->link != MMC_VERBS_LINK_DOWN)
			continue;
		if (now_ns >= patience_end_ns(verbs, connection)) {
			give_up(verbs, connection);
		} else if (now_ns >= connection->offer_ns) {
			send_offer(verbs, connection);
			connection->pause_ns =
				mmc_min_u64(2 * connection->pause_ns + PAUSE_NS,
					    PAUSE_NS_MAX);
			connection->offer_ns = now_ns + connection->pause_ns;
		}
	}
}

uint64_t mmc_verbs_reconnect_deadline_ns(const struct mmc_verbs *verbs)
{
	const struct mmc_verbs_connections *connections = &verbs->connections;
	uint64_t deadline_ns = MMC_NEVER_NS;

	for (uint32_t i = 0; connections->ndown > 0 && i < connections->count;
	     i++) {
		const struct mmc_verbs_connection *connection =
			&connections->items[i];

		if (connection->link == MMC_VERBS_LINK_DOWN)
			deadline_ns = mmc_min_u64(
				deadline_ns,
				mmc_min_u64(connection->offer_ns,
					    patience_end_ns(verbs,
							    connection)));
	}
	return deadline_ns;
}

/* ---- taking an offer ----------------------------------------------------- */

/*
 * Takes this end to the offer's epoch, which must be later than its own. Returns
 * whether the connection is down now, ready for the offer.
 */
static bool follow(struct mmc_verbs *verbs,
		   struct mmc_verbs_connection *connection,
		   const struct mmc_verbs_offer *offer)
{
	if (connection->link == MMC_VERBS_LINK_UP)
		mmc_verbs_reads_break(&verbs->reads, &verbs->connections,
				      connection, IBV_WC_RETRY_EXC_ERR);
	else if (!mmc_verbs_connection_reset(connection))
		mmc_verbs_connection_give_up(&verbs->connections, connection);
	connection->epoch = offer->epoch;
	return connection->link == MMC_VERBS_LINK_DOWN;
}

/* Begins a new epoch at this end, or gives up if the device does not comply. */
static void begin_epoch(struct mmc_verbs *verbs,
			struct mmc_verbs_connection *connection)
{
	if (!mmc_verbs_connection_reset(connection)) {
		mmc_verbs_connection_give_up(&verbs->connections, connection);
		return;
	}
	connection->epoch++;
	connection->pause_ns = 0;
	connection->offer_ns = mmc_verbs_clock_ns() + PAUSE_NS;
}

static void raise_to(struct mmc_verbs *verbs,
		     struct mmc_verbs_connection *connection,
		     const struct mmc_verbs_offer *offer)
{
	struct mmc_verbs_connections *connections = &verbs->connections;

	/* A completion of the last epoch must not be mistaken for one of the next. */
	mmc_verbs_reads_reap(&verbs->reads, connections);
	connection->theirs.psn = offer->psn;
	connection->remote.lid = offer->lid;
	/* The peer may not be reachable yet, or no longer. */
	if (mmc_verbs_connection_raise(connection, &verbs->port) != 0) {
		begin_epoch(verbs, connection);
		return;
	}
	connections->ndown--;
	verbs->endpoint.reconnects++;
	mmc_verbs_inquiry_start(connection);
}

bool mmc_verbs_reconnect_take(struct mmc_verbs *verbs, uint32_t source,
			      const uint8_t *bytes, uint32_t nbytes)
{
	struct mmc_verbs_connection *connection =
		source == MMC_PEER_UNKNOWN ? NULL
					   : verbs->ranks[source].connection;
	struct mmc_verbs_offer offer;

	if (connection == NULL ||
	    !mmc_verbs_offer_decode(&offer, bytes, nbytes) ||
	    offer.keys[0] != connection->keys[1] ||
	    offer.keys[1] != connection->keys[0] ||
	    (offer.lid == 0) != connection->remote.ethernet)
		return false;
	if (connection->link != MMC_VERBS_LINK_UP &&
	    connection->link != MMC_VERBS_LINK_DOWN)
		return true;
	mmc_verbs_follow_lid(verbs, source, offer.lid);
	if (offer.epoch > connection->epoch &&
	    !follow(verbs, connection, &offer))
		return true;
	if (offer.epoch == connection->epoch) {
		if (connection->link == MMC_VERBS_LINK_DOWN)
			raise_to(verbs, connection, &offer);
		if (!offer.taken && connection->link == MMC_VERBS_LINK_UP)
			send_offer(verbs, connection);
	}
	return true;
}
