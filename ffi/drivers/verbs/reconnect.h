/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Brings up a connection that went down. An adapter gives up a packet that is not
 * answered within its retries, and the queue pair with it: a port that is down for
 * seconds is enough. Both ends then reset their queue pairs, draw a new first PSN, and
 * offer it to each other by unicast datagrams, which carry control meanwhile. An end
 * that has the other's offer of the same epoch is up.
 */
#ifndef MMC_DRIVERS_VERBS_RECONNECT_H
#define MMC_DRIVERS_VERBS_RECONNECT_H

#include "drivers/verbs/connections.h"

/*
 * One end's part of a connection's next epoch. As bytes, in network order:
 *
 *     0         4          12      16    20        22          24
 *     | tag u32 | keys ... | epoch | PSN | LID u16 | taken u16 |
 *
 * The keys, the sender's first, are the first PSNs of the connection's first epoch: no
 * third rank or host knows them.
 */
struct mmc_verbs_offer {
	uint32_t keys[2];
	uint32_t epoch;
	uint32_t psn;
	uint16_t lid; /* the sender's, which may be new; 0 on Ethernet */
	bool taken;   /* the sender is up: it has the receiver's offer */
};

#define MMC_VERBS_OFFER_BYTES 24

void mmc_verbs_offer_encode(uint8_t *bytes,
			    const struct mmc_verbs_offer *offer);

/*
 * Reads an offer. Returns false, with nothing written, if the `nbytes` are no offer:
 * another length or tag, or a number out of its range.
 */
bool mmc_verbs_offer_decode(struct mmc_verbs_offer *offer, const uint8_t *bytes,
			    uint32_t nbytes);

struct mmc_verbs;

/*
 * Takes what may be an offer of `source`. Returns whether it is one that names the keys
 * of a connection; if not, nothing has changed.
 */
bool mmc_verbs_reconnect_take(struct mmc_verbs *verbs, uint32_t source,
			      const uint8_t *bytes, uint32_t nbytes);

/*
 * Sends the offers that are due, and breaks connections that have been down for longer
 * than mmc_verbs_patience_ns().
 */
void mmc_verbs_reconnect_poll(struct mmc_verbs *verbs);

/* Returns when mmc_verbs_reconnect_poll() is due next, or MMC_NEVER_NS. */
uint64_t mmc_verbs_reconnect_deadline_ns(const struct mmc_verbs *verbs);

#endif
