/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reliable connections of a rank, one to each partner: they carry control
 * and the reads of its partners' memory. All receive from one shared ring.
 */
#ifndef MMC_DRIVERS_VERBS_CONNECTIONS_H
#define MMC_DRIVERS_VERBS_CONNECTIONS_H

#include "core/codec.h"
#include "core/message.h"
#include "drivers/driver.h"
#include "drivers/verbs/completions.h"
#include "drivers/verbs/ring.h"
#include "drivers/verbs/slots.h"

/* What a connection carries, header and all, is no longer. */
#define MMC_VERBS_MESSAGE_BYTES_MAX (MMC_MESSAGE_BYTES_MAX + MMC_CRC_BYTES)

enum mmc_verbs_link {
	MMC_VERBS_LINK_NEW,
	MMC_VERBS_LINK_UP,
	MMC_VERBS_LINK_BROKEN, /* which the engine has to be told */
	MMC_VERBS_LINK_TOLD,
};

struct mmc_verbs_connection {
	uint32_t peer;
	uint32_t psn;
	enum mmc_verbs_link link;
	enum ibv_wc_status status; /* of a broken one */
	struct ibv_qp *qp;
	struct mmc_verbs_slots slots;
	uint32_t reads_max; /* pieces that may be read at a time */
	uint32_t nreads;    /* that are */
	bool silent;	/* the peer was inquired about, and not heard since */
	bool inquiring; /* a read of no bytes is under way */
	bool vouched;	/* the peer's adapter has answered one */
	uint64_t inquired_ns; /* when the last was posted */
};

struct mmc_verbs_connections {
	struct mmc_verbs_connection *items;
	uint32_t count;
	uint32_t nbroken;  /* that the engine has to be told */
	uint32_t nvouched; /* likewise */
	struct ibv_srq *srq;
	struct mmc_verbs_completions received;
	struct ibv_cq *send_cq; /* of reads, too */
	struct mmc_verbs_ring ring;
};

/*
 * Creates what connects this rank to its partners; completions go to `channel`.
 * Returns 0 or an error told; mmc_verbs_connections_destroy() is to be called
 * all the same.
 */
int mmc_verbs_connections_init(struct mmc_verbs_connections *connections,
			       const struct mmc_verbs_port *port,
			       struct ibv_comp_channel *channel);

void mmc_verbs_connections_destroy(struct mmc_verbs_connections *connections);

/*
 * Connects to the peer, whose address that is, and whose end of it. Returns 0
 * or an error told.
 */
int mmc_verbs_connection_start(struct mmc_verbs_connection *connection,
			       const struct mmc_verbs_port *port,
			       const struct mmc_verbs_address *address,
			       const struct mmc_verbs_end *end);

/* The connection whose queue pair has this number, or NULL. */
struct mmc_verbs_connection *
mmc_verbs_connection_find(const struct mmc_verbs_connections *connections,
			  uint32_t qpn);

/* The id of a request that is an inquiry; no slot's and no read's. */
#define MMC_VERBS_ID_INQUIRY (UINT64_C(1) << 62)

/* The inquiry about the peer of a connection was answered. */
void mmc_verbs_inquiry_over(struct mmc_verbs_connections *connections,
			    struct mmc_verbs_connection *connection);

/* Writes the event of a peer that was vouched for; false if there is none. */
bool mmc_verbs_inquiries_take(struct mmc_verbs_connections *connections,
			      struct mmc_event *event);

/* Marks it as broken, unless it is already: `status` is why. */
void mmc_verbs_connection_break(struct mmc_verbs_connections *connections,
				struct mmc_verbs_connection *connection,
				enum ibv_wc_status status);

#endif
