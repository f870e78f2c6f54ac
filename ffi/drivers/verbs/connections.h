/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reliable connections of a rank, one to each partner: they carry control
 * and the reads of its partners' memory. All receive from one shared ring. One
 * whose peer's adapter does not answer goes down; reconnect.h brings it up.
 */
#ifndef MMC_DRIVERS_VERBS_CONNECTIONS_H
#define MMC_DRIVERS_VERBS_CONNECTIONS_H

#include "core/wire/header.h"
#include "core/wire/message.h"
#include "drivers/driver.h"
#include "drivers/verbs/completions.h"
#include "drivers/verbs/ring.h"
#include "drivers/verbs/slots.h"

/* What a connection carries, header and all, is no longer. */
#define MMC_VERBS_MESSAGE_BYTES_MAX (MMC_MESSAGE_BYTES_MAX + MMC_CRC_BYTES)

/*
 * How TIMEOUT is shared out: the adapter's retries end in the first part of it, and in
 * the second what is down comes up again, or is broken.
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
	MMC_VERBS_LINK_DOWN,   /* reset: nothing is posted to it */
	MMC_VERBS_LINK_BROKEN, /* for good, which the engine has to be told */
	MMC_VERBS_LINK_TOLD,
};

/* The way from a port to the peer's. */
struct mmc_verbs_path {
	uint8_t gid[MMC_VERBS_GID_BYTES];
	uint16_t lid;
	uint8_t mtu;   /* enum ibv_mtu, the smaller of both ports' */
	bool ethernet; /* RoCE */
};

struct mmc_verbs_connection {
	uint32_t peer;
	uint32_t psn;
	enum mmc_verbs_link link;
	enum ibv_wc_status status; /* of one that is down or broken */
	struct ibv_qp *qp;
	struct mmc_verbs_path path;
	struct mmc_verbs_end theirs;
	/* The first PSNs of this rank and of the peer: only they know them. */
	uint32_t keys[2];
	uint32_t epoch;	   /* how often it was made anew, as both count it */
	bool proven;	   /* something has passed since it came up */
	uint64_t down_ns;  /* since when nothing has passed; if down: */
	uint64_t offer_ns; /* when the peer is told next how it may come up, */
	uint64_t pause_ns; /* and after that */
	struct mmc_verbs_slots slots;
	uint32_t reads_max; /* pieces that may be read at a time */
	uint32_t nreads;    /* that are */
	bool silent;	/* the peer was inquired about, and not heard since */
	bool inquiring; /* a read of no bytes is under way */
	bool vouched;	/* the peer's adapter has answered one */
	uint64_t inquired_ns; /* when the last was posted */
};

struct mmc_verbs_connections {
	const struct mmc_verbs_port *port;
	struct mmc_verbs_connection *items;
	uint32_t count;
	uint32_t ndown;
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

/*
 * Resets one that is up or down, whose reads are over, and draws a PSN: nothing
 * that was posted uses memory any more, and what was on its way is lost. Its
 * completions are to be ignored until none is left. Returns whether the device
 * complies.
 */
bool mmc_verbs_connection_reset(struct mmc_verbs_connection *connection);

/*
 * Brings one that was reset up, to the peer's end as it is in `theirs`. Returns
 * 0 or an errno value.
 */
int mmc_verbs_connection_raise(struct mmc_verbs_connection *connection,
			       const struct mmc_verbs_port *port);

/* Marks one that is down as broken for good. */
void mmc_verbs_connection_give_up(struct mmc_verbs_connections *connections,
				  struct mmc_verbs_connection *connection);

/* Whether a request ended so because the peer's adapter did not answer. */
bool mmc_verbs_is_silence(enum ibv_wc_status status);

/*
 * Whether a port that is down may be the reason. In Soft-RoCE that takes queue
 * pairs of all kinds to error, and only flushed requests tell of it.
 */
bool mmc_verbs_may_pass(enum ibv_wc_status status);

/* The connection whose queue pair has this number, or NULL. */
struct mmc_verbs_connection *
mmc_verbs_connection_find(const struct mmc_verbs_connections *connections,
			  uint32_t qpn);

/* The id of a request that is an inquiry; no slot's and no read's. */
#define MMC_VERBS_ID_INQUIRY (UINT64_C(1) << 62)

/*
 * Inquires over a connection that has just come up, to prove that it works; one
 * that cannot read is taken to.
 */
void mmc_verbs_inquiry_start(struct mmc_verbs_connection *connection);

/* The peer's process exists: mmc_verbs_inquiries_take() says so once. */
void mmc_verbs_connection_vouch(struct mmc_verbs_connections *connections,
				struct mmc_verbs_connection *connection);

/* The inquiry about the peer of a connection was answered. */
void mmc_verbs_inquiry_over(struct mmc_verbs_connections *connections,
			    struct mmc_verbs_connection *connection);

/* Writes the event of a peer that was vouched for; false if there is none. */
bool mmc_verbs_inquiries_take(struct mmc_verbs_connections *connections,
			      struct mmc_event *event);

/*
 * Takes it down if that may pass, and there is time to bring it up again; else
 * marks it as broken, unless it is already. `status` is why.
 */
void mmc_verbs_connection_break(struct mmc_verbs_connections *connections,
				struct mmc_verbs_connection *connection,
				enum ibv_wc_status status);

#endif
