/* SPDX-License-Identifier: BSD-3-Clause */
/* The verbs endpoint's structure, and the functions that the driver's files share. */
#ifndef MMC_DRIVERS_VERBS_ENDPOINT_H
#define MMC_DRIVERS_VERBS_ENDPOINT_H

#include "drivers/verbs/connections.h"
#include "drivers/verbs/groups.h"
#include "drivers/verbs/peers.h"
#include "drivers/verbs/queue.h"
#include "drivers/verbs/reads.h"
#include "drivers/verbs/reconnect.h"
#include "drivers/verbs/verbs.h"

/* The time from an attempt to make a rank's address handle to the next attempt. */
#define MMC_VERBS_RETRY_NS (5 * MMC_S_NS)

/* The longest time that send() waits for room in a queue. */
#define MMC_VERBS_ROOM_NS (100 * MMC_MS_NS)

/* What is known of a rank, this one included, from its address. */
struct mmc_verbs_rank {
	uint8_t gid[MMC_VERBS_GID_BYTES];
	uint16_t lid;
	uint32_t unicast_qpn;
	uint32_t
		data_qpn; /* in a pair: where it receives what would be multicast */
	struct ibv_ah *ah; /* address handle for unicast datagrams, or NULL */
	uint64_t retry_ns; /* when to try again to make `ah` */
	/* NULL if the rank is not a partner of this one. */
	struct mmc_verbs_connection *connection;
};

struct mmc_verbs {
	struct mmc_endpoint endpoint;
	struct mmc_driver driver; /* the functions that the options ask for */
	struct mmc_verbs_port port;
	struct mmc_verbs_address own;

	/* The completion channel of the connections and `unicast`. */
	struct ibv_comp_channel *control;
	/* The completion channel of the subgroups' queues. */
	struct ibv_comp_channel *data;
	/*
	 * Whether all completion queues were asked to notify at their next completion,
	 * and polls have found no completion since.
	 */
	bool armed;

	struct mmc_verbs_connections connections;
	struct mmc_verbs_reads reads;
	struct mmc_verbs_queue unicast; /* for datagrams to one rank alone */
	struct mmc_verbs_queue *queues; /* one for each subgroup */
	struct ibv_ah **group_ahs;	/* one for each subgroup */
	uint32_t nattached; /* subgroups' queues that are attached to groups */
	struct mmc_verbs_groups groups;

	struct mmc_verbs_peers peers;
	struct mmc_verbs_rank *ranks;

	struct mmc_placement placement; /* used with zero-copy receive */

	uint32_t next_queue; /* which subgroup poll() serves first */
	uint32_t npolls;     /* calls of poll() so far */

	/* When the next step of a recovery is due, or MMC_NEVER_NS. */
	uint64_t recover_ns;
	/* Whether the recovery must make the ranks' address handles again. */
	bool ahs_stale;

	/* Why the endpoint as a whole has failed, or "". */
	char failure[256];
	bool told; /* whether the engine was told of `failure` */
};

static inline struct mmc_verbs *mmc_verbs_of(struct mmc_endpoint *endpoint)
{
	return (struct mmc_verbs *)endpoint;
}

/*
 * Marks the endpoint as failed for good, and keeps the reason, which is formatted as by
 * printf(). Only the first call has an effect.
 */
__attribute__((format(printf, 2, 3))) void
mmc_verbs_fail(struct mmc_verbs *verbs, const char *format, ...);

/*
 * Takes down a queue on which a request has failed with `status`, and starts a
 * recovery. Fails the endpoint if a recovery from `status` is not possible.
 */
void mmc_verbs_break_queue(struct mmc_verbs *verbs,
			   struct mmc_verbs_queue *queue,
			   enum ibv_wc_status status);

/* Fails the endpoint because of the `status` of a queue that is down. */
void mmc_verbs_fail_queue(struct mmc_verbs *verbs,
			  const struct mmc_verbs_queue *queue);

/* The driver's connect(), as driver.h and verbs.h describe it. */
int mmc_verbs_connect(struct mmc_endpoint *endpoint, const uint8_t *addresses);

/*
 * Makes the address handle for datagrams to a rank, unless there is one. Returns
 * whether there is one now: if not, the rank cannot be addressed.
 */
bool mmc_verbs_find_ah(struct mmc_verbs *verbs, struct mmc_verbs_rank *rank);

/* The driver's poll() and send(), as driver.h describes them. */
int mmc_verbs_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		   unsigned nmax);

int mmc_verbs_send(struct mmc_endpoint *endpoint,
		   const struct mmc_parcel *parcels, unsigned nparcels);

/*
 * Sends a datagram between drivers, of which the engine does not know, to a rank. It
 * may be lost. The receiver recognizes it by its lack of an immediate, which the
 * engine's datagrams have.
 */
void mmc_verbs_tell(struct mmc_verbs *verbs, uint32_t peer,
		    const uint8_t *bytes, uint32_t nbytes);

/*
 * Waits until all datagrams of the queue have left. Returns false if that takes longer
 * than MMC_VERBS_ROOM_NS, or the queue is down.
 */
bool mmc_verbs_settle(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue);

/* The driver's inquire(), as driver.h describes it. */
void mmc_verbs_inquire(struct mmc_endpoint *endpoint, uint32_t peer);

/*
 * Sends up to `count` plugs from a subgroup's queue to itself. Returns how many were
 * sent.
 */
uint32_t mmc_verbs_send_plugs(struct mmc_verbs *verbs,
			      struct mmc_verbs_queue *queue, uint32_t count);

/* ---- zero-copy receive --------------------------------------------------- */

/*
 * Completes the slot of a queue that has received a datagram of `nbytes` from `source`;
 * `head` is its header. Returns where its payload lies.
 */
uint8_t *mmc_verbs_placement_take(struct mmc_verbs *verbs,
				  const struct mmc_verbs_queue *queue,
				  uint32_t slot, uint32_t source,
				  const uint8_t *head, uint32_t nbytes);

/*
 * Ends the pauses of those queues that no longer need one (drivers/placement.h). Call
 * this when all completed slots were handled, and before slots are posted again.
 */
void mmc_verbs_placement_resume(struct mmc_verbs *verbs);

/*
 * Helps to use up the slots of paused queues that still aim at places. Writes events
 * for payloads that have waited and are in their places now, `nmax` at most. Returns
 * how many.
 */
unsigned mmc_verbs_placement_poll(struct mmc_verbs *verbs,
				  struct mmc_event *events, unsigned nmax);

/* The driver's functions of these names, as driver.h describes them. */
int mmc_verbs_place(struct mmc_endpoint *endpoint, void *to,
		    const struct mmc_event *datagrams, uint32_t ndatagrams,
		    uint32_t head_bytes, uint64_t cookie);
int mmc_verbs_begin_placement(struct mmc_endpoint *endpoint,
			      const struct mmc_predictor *predictor);
int mmc_verbs_end_placement(struct mmc_endpoint *endpoint, bool forget);

/* Returns when mmc_verbs_placement_poll() is due next, or MMC_NEVER_NS. */
uint64_t mmc_verbs_placement_deadline_ns(struct mmc_endpoint *endpoint);

/* ---- watching ------------------------------------------------------------ */

/* Creates the completion channels. Returns 0 or an error, with the reason set. */
int mmc_verbs_watch_init(struct mmc_verbs *verbs);

/* Destroys the completion channels; no queue may use them any more. */
void mmc_verbs_watch_destroy(struct mmc_verbs *verbs);

/* Handles the pending events of the device and the fabric, without waiting. */
void mmc_verbs_watch_device(struct mmc_verbs *verbs);

/* ---- recovery ------------------------------------------------------------ */

/*
 * Starts a recovery, because the port, or what the fabric knows of it, has changed:
 * memberships in groups may have ended, and groups may have other addresses. With
 * `ahs_stale`, address handles of ranks may be wrong, too: this rank's GID may have
 * another index in the port's table, or other ranks may have other LIDs.
 */
void mmc_verbs_recover_soon(struct mmc_verbs *verbs, bool ahs_stale);

/* Handles the fabric's pending events about memberships. */
void mmc_verbs_recover_listen(struct mmc_verbs *verbs);

/*
 * Notes the LID that a datagram or an offer of `peer` came from. If it is new, later
 * datagrams to the peer go there.
 */
void mmc_verbs_follow_lid(struct mmc_verbs *verbs, uint32_t peer, uint16_t lid);

/* Moves the recovery one step on, if it is time. */
void mmc_verbs_recover_poll(struct mmc_verbs *verbs);

/* Returns when mmc_verbs_recover_poll() is due next, or MMC_NEVER_NS. */
uint64_t mmc_verbs_recover_deadline_ns(const struct mmc_verbs *verbs);

/* The driver's arm() and fds(), as driver.h describes them. */
bool mmc_verbs_arm(struct mmc_endpoint *endpoint);

unsigned mmc_verbs_fds(struct mmc_endpoint *endpoint, int *fds,
		       unsigned *ncontrol);

#endif
