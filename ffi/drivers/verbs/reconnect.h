/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Brings up connections that went down. When no retry of a packet is answered, the
 * adapter gives up the queue pair. A port that is down for some seconds is enough for
 * that. Both ends then reset their queue pairs, draw new PSNs, and send these to each
 * other in *offers*, which are unicast datagrams. (Control messages go by unicast
 * datagrams meanwhile, too.) Each end counts how often the connection was made again;
 * this number is the connection's *incarnation*. An end comes up when it has the
 * other's offer for the same incarnation.
 */
#ifndef MMC_DRIVERS_VERBS_RECONNECT_H
#define MMC_DRIVERS_VERBS_RECONNECT_H

#include "drivers/verbs/connections.h"

/*
 * What one end offers for the connection's next incarnation. The bytes, in network
 * order:
 *
 *     0         4                12            16    20        22          24
 *     | tag u32 | first PSNs ... | incarnation | PSN | LID u16 | taken u16 |
 *
 * The first PSNs are those with which the connection came up for the first time, the
 * sender's before the receiver's. Strangers do not know them.
 */
struct mmc_verbs_offer {
	uint32_t first_psns[2];
	uint32_t incarnation;
	uint32_t psn;
	uint16_t lid; /* the sender's LID, which may be new; 0 on Ethernet */
	bool taken;   /* the sender has the receiver's offer, and so is up */
};

#define MMC_VERBS_OFFER_BYTES 24

/* Writes MMC_VERBS_OFFER_BYTES. */
void mmc_verbs_offer_encode(uint8_t *bytes,
			    const struct mmc_verbs_offer *offer);

/*
 * Reads an offer. Returns false, and writes nothing, if the `nbytes` are no offer: the
 * length or the tag is wrong, or a number is out of its range.
 */
bool mmc_verbs_offer_decode(struct mmc_verbs_offer *offer, const uint8_t *bytes,
			    uint32_t nbytes);

struct mmc_verbs;

/*
 * Handles a datagram that may be an offer of `source`. Returns false, and changes
 * nothing, unless it is an offer with the first PSNs of the connection to `source`.
 */
bool mmc_verbs_reconnect_take(struct mmc_verbs *verbs, uint32_t source,
			      const uint8_t *bytes, uint32_t nbytes);

/*
 * Sends the offers that are due, and gives up the connections that have been down for
 * longer than mmc_verbs_patience_ns().
 */
void mmc_verbs_reconnect_poll(struct mmc_verbs *verbs);

/* Returns when mmc_verbs_reconnect_poll() is due next, or MMC_NEVER_NS. */
uint64_t mmc_verbs_reconnect_deadline_ns(const struct mmc_verbs *verbs);

#endif
