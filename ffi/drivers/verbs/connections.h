/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reliable connections of a rank, one to each partner: they carry control and the
 * reads of its partners' memory. All receive from one shared ring. A connection whose
 * peer's adapter does not answer goes down; reconnect.h brings it up again.
 */
#ifndef MMC_DRIVERS_VERBS_CONNECTIONS_H
#define MMC_DRIVERS_VERBS_CONNECTIONS_H

#include "core/wire/header.h"
#include "drivers/driver.h"
#include "drivers/verbs/completions.h"
#include "drivers/verbs/ring.h"
#include "drivers/verbs/slots.h"

/* The longest message that a connection carries, header included. */
#define MMC_VERBS_MESSAGE_BYTES_MAX (MMC_MESSAGE_BYTES_MAX + MMC_CRC_BYTES)

/*
 * The two parts of TIMEOUT. The adapter's retries end in the first; in the second a
 * connection that is down comes up again or breaks.
 */
static inline uint64_t mmc_verbs_retrying_ns(uint64_t timeout_ns)
{
	return timeout_ns / 8 * 3;
}

static inline uint64_t mmc_verbs_patience_ns(uint64_t timeout_ns)
{
	return timeout_ns / 8 * 5;
}

enum mmc_verbs_link {
	MMC_VERBS_LINK_NEW,
	MMC_VERBS_LINK_UP,
	MMC_VERBS_LINK_DOWN,   /* reset: no request is posted to it */
	MMC_VERBS_LINK_BROKEN, /* for good; the engine is not told yet */
	MMC_VERBS_LINK_TOLD,
};

/* The peer's port, as packets to it need it. */
struct mmc_verbs_remote {
	uint8_t gid[MMC_VERBS_GID_BYTES];
	uint16_t lid;
	uint8_t mtu;   /* enum ibv_mtu, the smaller of both ports' MTUs */
	bool ethernet; /* RoCE */
};

struct mmc_verbs_connection {
	uint32_t peer;
	uint32_t psn;
	enum mmc_verbs_link link;
	enum ibv_wc_status status; /* why the connection is down or broken */
	struct ibv_qp *qp;
	struct mmc_verbs_remote remote;
	struct mmc_verbs_end theirs;
	/* The first PSNs of this rank and of the peer, which no third rank knows. */
	uint32_t keys[2];
	uint32_t epoch;	   /* how often it was made again, as both ends count */
	bool proven;	   /* something has passed since it came up */
	uint64_t down_ns;  /* while down: since when nothing has passed */
	uint64_t offer_ns; /* while down: when the peer gets the next offer */
	uint64_t pause_ns; /* while down: the last pause between two offers */
	struct mmc_verbs_slots slots;
	uint32_t reads_max; /* pieces that may be read at a time */
	uint32_t nreads;    /* pieces that are being read */
	bool silent;	/* the peer was inquired about, and not heard since */
	bool inquiring; /* a read of no bytes is under way */
	bool vouched;	/* the peer exists; the engine is not told yet */
	uint64_t inquired_ns; /* when the last inquiry was posted */
};

struct mmc_verbs_connections {
	const struct mmc_verbs_port *port;
	struct mmc_verbs_connection *items;
	uint32_t count;
	uint32_t ndown;
	uint32_t nbroken; /* broken connections the engine is not told of yet */
	uint32_t nvouched; /* vouched peers the engine is not told of yet */
	struct ibv_srq *srq;
	struct mmc_verbs_completions received;
	struct ibv_cq *send_cq; /* of messages, reads and inquiries */
	struct mmc_verbs_ring ring;
};

/*
 * Creates the connections of this rank to its partners, not yet connected; completions
 * go to `channel`. Returns 0 or an error, with the reason set; the caller calls
 * mmc_verbs_connections_destroy() in either case.
 */
int mmc_verbs_connections_init(struct mmc_verbs_connections *connections,
			       const struct mmc_verbs_port *port,
			       struct ibv_comp_channel *channel);

void mmc_verbs_connections_destroy(struct mmc_verbs_connections *connections);

/*
 * Connects to the peer at `address`, whose end of the connection is `end`. Returns 0 or
 * an error, with the reason set.
 */
int mmc_verbs_connection_start(struct mmc_verbs_connection *connection,
			       const struct mmc_verbs_port *port,
			       const struct mmc_verbs_address *address,
			       const struct mmc_verbs_end *end);

/*
 * Resets a connection that is up or down and has no reads under way, and draws a new
 * PSN. No request posted before uses memory any more, and what was on its way is lost.
 * Completions from before the reset must be ignored until none is left. Returns whether
 * the device complies.
 */
bool mmc_verbs_connection_reset(struct mmc_verbs_connection *connection);

/*
 * Brings up a connection that was reset, to the peer's end in `theirs`. Returns 0 or an
 * errno value.
 */
int mmc_verbs_connection_raise(struct mmc_verbs_connection *connection,
			       const struct mmc_verbs_port *port);

/* Marks a connection that is down as broken for good. */
void mmc_verbs_connection_give_up(struct mmc_verbs_connections *connections,
				  struct mmc_verbs_connection *connection);

/* Returns whether `status` says that the peer's adapter did not answer. */
bool mmc_verbs_is_silence(enum ibv_wc_status status);

/*
 * Returns whether a port that is down may be the reason for `status`. With Soft-RoCE
 * that takes queue pairs of all kinds to error, which only flushed requests show.
 */
bool mmc_verbs_may_pass(enum ibv_wc_status status);

/* Returns the connection whose queue pair has this number, or NULL. */
struct mmc_verbs_connection *
mmc_verbs_connection_find(const struct mmc_verbs_connections *connections,
			  uint32_t qpn);

/* The id of a request that is an inquiry; no slot and no read has this id. */
#define MMC_VERBS_ID_INQUIRY (UINT64_C(1) << 62)

/*
 * Inquires over a connection that has just come up, to prove that it works. One that
 * cannot read is taken as proven.
 */
void mmc_verbs_inquiry_start(struct mmc_verbs_connection *connection);

/*
 * Notes that the peer's process exists, which mmc_verbs_inquiries_take() reports once.
 */
void mmc_verbs_connection_vouch(struct mmc_verbs_connections *connections,
				struct mmc_verbs_connection *connection);

/* Ends the inquiry about the connection's peer, which was answered. */
void mmc_verbs_inquiry_over(struct mmc_verbs_connections *connections,
			    struct mmc_verbs_connection *connection);

/* Writes the event of a peer that was vouched for. Returns false if there is none. */
bool mmc_verbs_inquiries_take(struct mmc_verbs_connections *connections,
			      struct mmc_event *event);

/*
 * Takes down a connection that is up, because of `status`. It may come up again if
 * `status` may pass and there is a TIMEOUT to do so in; otherwise it is marked as
 * broken.
 */
void mmc_verbs_connection_break(struct mmc_verbs_connections *connections,
				struct mmc_verbs_connection *connection,
				enum ibv_wc_status status);

#endif
