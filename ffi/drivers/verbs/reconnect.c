/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/reconnect.h"

#include <string.h>

#include "drivers/verbs/endpoint.h"
#include "support/bits.h"

#define TAG UINT32_C(0x6d6d634f) /* "mmcO" */

#define PSN_MAX 0xffffff
#define LID_MULTICAST 0xc000 /* the first LID that is a group's */

/* The offsets of the fields; see reconnect.h. */
enum {
	OFFER_FIRST_PSNS = 4,
	OFFER_INCARNATION = 12,
	OFFER_PSN = 16,
	OFFER_LID = 20,
};

/* The low half of the word at OFFER_LID: bit 0 is `taken`, and the others are 0. */
#define TAKEN_MASK 0xffffU
#define TAKEN_BIT 1U

/* The first pause between two offers, and the longest. */
#define PAUSE_NS (10 * MMC_MS_NS)
#define PAUSE_NS_MAX (160 * MMC_MS_NS)

/* ---- as bytes ------------------------------------------------------------ */

void mmc_verbs_offer_encode(uint8_t *bytes, const struct mmc_verbs_offer *offer)
{
	mmc_put_u32(bytes, TAG);
	mmc_put_u32(bytes + OFFER_FIRST_PSNS, offer->first_psns[0]);
	mmc_put_u32(bytes + OFFER_FIRST_PSNS + 4, offer->first_psns[1]);
	mmc_put_u32(bytes + OFFER_INCARNATION, offer->incarnation);
	mmc_put_u32(bytes + OFFER_PSN, offer->psn);
	mmc_put_u32(bytes + OFFER_LID,
		    (uint32_t)offer->lid << 16 | offer->taken);
}

bool mmc_verbs_offer_decode(struct mmc_verbs_offer *offer, const uint8_t *bytes,
			    uint32_t nbytes)
{
	struct mmc_verbs_offer read;
	uint32_t last;

	if (nbytes != MMC_VERBS_OFFER_BYTES || mmc_get_u32(bytes) != TAG)
		return false;
	last = mmc_get_u32(bytes + OFFER_LID);
	read = (struct mmc_verbs_offer){
		.first_psns = { mmc_get_u32(bytes + OFFER_FIRST_PSNS),
				mmc_get_u32(bytes + OFFER_FIRST_PSNS + 4) },
		.incarnation = mmc_get_u32(bytes + OFFER_INCARNATION),
		.psn = mmc_get_u32(bytes + OFFER_PSN),
		.lid = (uint16_t)(last >> 16),
		.taken = last & TAKEN_BIT,
	};
	if (read.incarnation == 0 || read.psn > PSN_MAX ||
	    (last & TAKEN_MASK & ~TAKEN_BIT) != 0 || read.lid >= LID_MULTICAST)
		return false;
	*offer = read;
	return true;
}

/* ---- offering ------------------------------------------------------------ */

static void send_offer(struct mmc_verbs *verbs,
		       const struct mmc_verbs_connection *connection)
{
	const struct mmc_verbs_offer offer = {
		.first_psns = { connection->first_psns[0],
				connection->first_psns[1] },
		.incarnation = connection->incarnation,
		.psn = connection->psn,
		.lid = verbs->own.lid,
		.taken = connection->link == MMC_VERBS_LINK_UP,
	};
	uint8_t bytes[MMC_VERBS_OFFER_BYTES];

	mmc_verbs_offer_encode(bytes, &offer);
	mmc_verbs_tell(verbs, connection->peer, bytes, sizeof(bytes));
}

/* Returns when a connection that is down is given up. */
static uint64_t patience_end_ns(const struct mmc_verbs *verbs,
				const struct mmc_verbs_connection *connection)
{
	return connection->down_ns +
	       mmc_verbs_patience_ns(verbs->endpoint.timeout_ns);
}

/*
 * Gives up a connection that is down. If this rank's own port is down, that is the
 * reason, and the whole endpoint fails.
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
 * Takes this end to the incarnation of the offer, which is later than its own. Returns
 * whether the connection is down now, and ready to be brought up with the offer.
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
	connection->incarnation = offer->incarnation;
	return connection->link == MMC_VERBS_LINK_DOWN;
}

/*
 * Begins a new incarnation at this end. Gives up the connection if the device refuses.
 */
static void begin_incarnation(struct mmc_verbs *verbs,
			      struct mmc_verbs_connection *connection)
{
	if (!mmc_verbs_connection_reset(connection)) {
		mmc_verbs_connection_give_up(&verbs->connections, connection);
		return;
	}
	connection->incarnation++;
	connection->pause_ns = 0;
	connection->offer_ns = mmc_verbs_clock_ns() + PAUSE_NS;
}

/* Brings up a connection that is down with the peer's offer. */
static void raise_to(struct mmc_verbs *verbs,
		     struct mmc_verbs_connection *connection,
		     const struct mmc_verbs_offer *offer)
{
	struct mmc_verbs_connections *connections = &verbs->connections;

	/* The next incarnation must not take completions of the last for its own. */
	mmc_verbs_reads_reap(&verbs->reads, connections);
	connection->peer_end.psn = offer->psn;
	connection->peer_port.lid = offer->lid;
	/* The peer may not be reachable yet, or may no longer be. */
	if (mmc_verbs_connection_bring_up(connection, &verbs->port) != 0) {
		begin_incarnation(verbs, connection);
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
	    offer.first_psns[0] != connection->first_psns[1] ||
	    offer.first_psns[1] != connection->first_psns[0] ||
	    (offer.lid == 0) != connection->peer_port.ethernet)
		return false;
	if (connection->link != MMC_VERBS_LINK_UP &&
	    connection->link != MMC_VERBS_LINK_DOWN)
		return true;
	mmc_verbs_follow_lid(verbs, source, offer.lid);
	if (offer.incarnation > connection->incarnation &&
	    !follow(verbs, connection, &offer))
		return true;
	if (offer.incarnation == connection->incarnation) {
		if (connection->link == MMC_VERBS_LINK_DOWN)
			raise_to(verbs, connection, &offer);
		if (!offer.taken && connection->link == MMC_VERBS_LINK_UP)
			send_offer(verbs, connection);
	}
	return true;
}
