/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reliable connections of a rank, one to each partner. They carry control messages
 * and reads of memory. What they receive goes to one ring of slots, which they share.
 * If the peer's adapter no longer answers, a connection goes *down*, and reconnect.h
 * brings it up again. If that fails, or is not possible, the connection is *broken* for
 * good.
 */
#ifndef MMC_DRIVERS_VERBS_CONNECTIONS_H
#define MMC_DRIVERS_VERBS_CONNECTIONS_H

#include <mpimcast/protect.h>

#include "core/wire/header.h"
#include "drivers/driver.h"
#include "drivers/verbs/completions.h"
#include "drivers/verbs/ring.h"
#include "drivers/verbs/slots.h"

/* The longest message that a connection carries, header included. */
#define MMC_VERBS_MESSAGE_BYTES_MAX (MMC_MESSAGE_BYTES_MAX + MMC_SEAL_BYTES)

/*
 * Returns the length of the first part of `timeout_ns`, the time for which a peer may
 * be silent. During this part the adapter sends unanswered packets again, until it
 * gives up and the connection goes down.
 */
static inline uint64_t mmc_verbs_retrying_ns(uint64_t timeout_ns)
{
	return timeout_ns / 8 * 3;
}

/*
 * Returns the length of the second part of `timeout_ns`, the time for which a peer may
 * be silent. A connection that is down for longer than this part is broken for good.
 */
static inline uint64_t mmc_verbs_patience_ns(uint64_t timeout_ns)
{
	return timeout_ns / 8 * 5;
}

enum mmc_verbs_link {
	MMC_VERBS_LINK_NEW, /* created, not connected yet */
	MMC_VERBS_LINK_UP,
	MMC_VERBS_LINK_DOWN,   /* reset: no request may be posted */
	MMC_VERBS_LINK_BROKEN, /* for good; the engine was not told yet */
	MMC_VERBS_LINK_TOLD,   /* broken for good, and the engine was told */
};

/* How to address packets to the peer's port. */
struct mmc_verbs_peer_port {
	uint8_t gid[MMC_VERBS_GID_BYTES];
	uint16_t lid;
	uint8_t mtu;   /* enum ibv_mtu: the smaller of both ports' MTUs */
	bool ethernet; /* whether it is a RoCE port */
};

struct mmc_verbs_window;

struct mmc_verbs_connection {
	uint32_t peer; /* the rank at the other end */
	uint32_t psn;  /* of the first packet that this end sends */
	enum mmc_verbs_link link;
	enum ibv_wc_status status; /* why the connection is down or broken */
	struct ibv_qp *qp;
	/* Where packets to the peer go: to its port, and there to its queue pair. */
	struct mmc_verbs_peer_port peer_port;
	struct mmc_verbs_end peer_end;
	/*
	 * The PSNs of both ends when the connection first came up, this end's first. No
	 * stranger knows them, so an offer that has them comes from a rank.
	 */
	uint32_t first_psns[2];
	/*
	 * How often the connection was made again. Both ends have agreed on this number
	 * when it comes up.
	 */
	uint32_t incarnation;
	/* Whether the connection has carried anything since it last came up. */
	bool proven;
	uint64_t down_ns;  /* while down: since when it has carried nothing */
	uint64_t offer_ns; /* while down: when to send the next offer */
	uint64_t pause_ns; /* while down: the pause before that offer */
	struct mmc_verbs_slots slots;
	uint32_t reads_max; /* stretches that may be read at a time */
	uint32_t nreads;    /* stretches that are being read */
	bool silent;	/* the engine has inquired; nothing was heard since */
	bool inquiring; /* an inquiry, a read of no bytes, is under way */
	/* The adapter has shown that the peer exists; the engine was not told yet. */
	bool vouched;
	uint64_t inquired_ns;		  /* when the last inquiry was posted */
	struct mmc_verbs_window *windows; /* by which the peer may read */
	struct mmc_verbs_window
		*binding; /* a request to bind it is under way */
};

struct mmc_verbs_connections {
	const struct mmc_verbs_port *port;
	struct mmc_verbs_connection *items;
	uint32_t count;
	uint32_t ndown;	     /* connections that are down */
	uint32_t nbroken;    /* those in the state MMC_VERBS_LINK_BROKEN */
	uint32_t nvouched;   /* those with `vouched` */
	struct ibv_srq *srq; /* the shared receive queue */
	struct mmc_verbs_completions received;
	struct ibv_cq *send_cq; /* for messages, reads and inquiries */
	struct mmc_verbs_ring ring;
};

/*
 * Creates the queue pairs for the connections to this rank's partners. They are not
 * connected yet. Their completions are notified to `channel`. Returns 0 or an error,
 * with the reason set; the caller must call mmc_verbs_connections_destroy() in either
 * case.
 */
int mmc_verbs_connections_init(struct mmc_verbs_connections *connections,
			       const struct mmc_verbs_port *port,
			       struct ibv_comp_channel *channel);

void mmc_verbs_connections_destroy(struct mmc_verbs_connections *connections);

/*
 * Connects to the peer for the first time. `address` is the peer's, and `end` its end
 * of this connection. Returns 0 or an error, with the reason set.
 */
int mmc_verbs_connection_start(struct mmc_verbs_connection *connection,
			       const struct mmc_verbs_port *port,
			       const struct mmc_verbs_address *address,
			       const struct mmc_verbs_end *end);

/*
 * Resets a connection that is up or down, and draws a new PSN. What was on its way is
 * lost: the caller fails the reads that were under way. The peer's rights to read end. On return no request uses
 * memory any more. Completions of requests from before the reset may still be found,
 * and must be ignored. Returns false if the device refuses to reset.
 */
bool mmc_verbs_connection_reset(struct mmc_verbs_connection *connection);

/*
 * Brings up a connection that is new or was reset, with `peer_end` as its other end.
 * Returns 0 or an errno value.
 */
int mmc_verbs_connection_bring_up(struct mmc_verbs_connection *connection,
				  const struct mmc_verbs_port *port);

/* Marks a connection that is down as broken for good. */
void mmc_verbs_connection_give_up(struct mmc_verbs_connections *connections,
				  struct mmc_verbs_connection *connection);

/* Returns the connection whose queue pair has this number, or NULL. */
struct mmc_verbs_connection *
mmc_verbs_connection_find(const struct mmc_verbs_connections *connections,
			  uint32_t qpn);

/* The id of a request that is an inquiry. No message and no read has this id. */
#define MMC_VERBS_ID_INQUIRY (UINT64_C(1) << 62)

/* The id of a request to bind a window. */
#define MMC_VERBS_ID_BIND (UINT64_C(1) << 61)

/*
 * Begins an inquiry over a connection that has just come up: the answer proves that the
 * connection works. A connection that cannot read counts as proven at once.
 */
void mmc_verbs_inquiry_start(struct mmc_verbs_connection *connection);

/*
 * Records that the peer's adapter vouches for the peer: the adapter has shown that the
 * peer's process exists. mmc_verbs_inquiries_take() then reports this once.
 */
void mmc_verbs_connection_vouch(struct mmc_verbs_connections *connections,
				struct mmc_verbs_connection *connection);

/* Handles the answer to the inquiry that is under way over a connection. */
void mmc_verbs_inquiry_ended(struct mmc_verbs_connections *connections,
			     struct mmc_verbs_connection *connection);

/* Writes the event that a `vouched` peer exists. Returns false if there is none. */
bool mmc_verbs_inquiries_take(struct mmc_verbs_connections *connections,
			      struct mmc_event *event);

/*
 * Takes down or breaks a connection that is up, because a request has ended with
 * `status`. The connection goes down if the status is transient or says that a right to
 * memory was missing, the option timeout_ns is not 0 and the device can reset it.
 * Otherwise it is broken for good. Does nothing to a connection that is not up.
 */
void mmc_verbs_connection_on_error(struct mmc_verbs_connections *connections,
				   struct mmc_verbs_connection *connection,
				   enum ibv_wc_status status);

#endif
