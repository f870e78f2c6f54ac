/* SPDX-License-Identifier: BSD-3-Clause */
/* A verbs endpoint as the files of this driver see it. */
#ifndef MMC_DRIVERS_VERBS_ENDPOINT_H
#define MMC_DRIVERS_VERBS_ENDPOINT_H

#include "drivers/verbs/connections.h"
#include "drivers/verbs/groups.h"
#include "drivers/verbs/peers.h"
#include "drivers/verbs/queue.h"
#include "drivers/verbs/reads.h"
#include "drivers/verbs/reconnect.h"
#include "drivers/verbs/verbs.h"

/* After a failed attempt a rank is not addressed again for this long. */
#define MMC_VERBS_RETRY_NS (5 * MMC_S_NS)

/* The longest time that send() waits for room in a queue. */
#define MMC_VERBS_ROOM_NS (100 * MMC_MS_NS)

/* Another rank, or this one, as known from its address. */
struct mmc_verbs_rank {
	uint8_t gid[MMC_VERBS_GID_BYTES];
	uint16_t lid;
	uint32_t unicast_qpn;
	struct ibv_ah *ah; /* for unicast datagrams; NULL: none */
	uint64_t retry_ns; /* `ah` is not made before this time */
	struct mmc_verbs_connection *connection; /* NULL if not a partner */
};

struct mmc_verbs {
	struct mmc_endpoint endpoint;
	struct mmc_driver driver; /* without what the options leave out */
	struct mmc_verbs_port port;
	struct mmc_verbs_address own;

	struct ibv_comp_channel *control; /* for connections, `unicast` */
	struct ibv_comp_channel *data;	  /* for the subgroups' queues */
	bool armed; /* notifications are on; no completion found since */

	struct mmc_verbs_connections connections;
	struct mmc_verbs_reads reads;
	struct mmc_verbs_queue unicast;
	struct mmc_verbs_queue *queues; /* one for each subgroup */
	struct ibv_ah **group_ahs;	/* one for each subgroup */
	uint32_t nattached;
	struct mmc_verbs_groups groups;

	struct mmc_verbs_peers peers;
	struct mmc_verbs_rank *ranks;

	struct mmc_placement placement; /* used with zero-copy receive */

	uint32_t turn; /* which subgroup poll() serves first */
	uint32_t npolls;

	uint64_t recover_ns; /* when to join groups again, or MMC_NEVER_NS */
	bool ahs_stale; /* the ranks' address handles are to be made again */

	/* The failure that has broken the endpoint as a whole; "" if there was none. */
	char failure[256];
	bool told; /* `failure` was reported */
};

static inline struct mmc_verbs *mmc_verbs_of(struct mmc_endpoint *endpoint)
{
	return (struct mmc_verbs *)endpoint;
}

/* Ends all traffic of the endpoint for good. Only the first reason is kept. */
__attribute__((format(printf, 2, 3))) void
mmc_verbs_fail(struct mmc_verbs *verbs, const char *format, ...);

/*
 * Takes down a queue whose requests end with `status`, or fails the endpoint if no
 * recovery from that is possible.
 */
void mmc_verbs_break_queue(struct mmc_verbs *verbs,
			   struct mmc_verbs_queue *queue,
			   enum ibv_wc_status status);

/* Fails the endpoint for the status with which the queue has ended. */
void mmc_verbs_fail_queue(struct mmc_verbs *verbs,
			  const struct mmc_verbs_queue *queue);

int mmc_verbs_connect(struct mmc_endpoint *endpoint, const uint8_t *addresses);

/*
 * Makes the address handle for datagrams to a rank, unless there is one. Returns false
 * if the rank cannot be addressed.
 */
bool mmc_verbs_find_ah(struct mmc_verbs *verbs, struct mmc_verbs_rank *rank);

int mmc_verbs_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		   unsigned nmax);

int mmc_verbs_send(struct mmc_endpoint *endpoint,
		   const struct mmc_parcel *parcels, unsigned nparcels);

/*
 * Sends a datagram of the driver's own to a rank; it may be lost. Unlike the engine's
 * datagrams it has no immediate.
 */
void mmc_verbs_tell(struct mmc_verbs *verbs, uint32_t peer,
		    const uint8_t *bytes, uint32_t nbytes);

/*
 * Waits until the queue has sent everything. Returns false if that takes too long, or
 * the queue is broken.
 */
bool mmc_verbs_settle(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue);

void mmc_verbs_inquire(struct mmc_endpoint *endpoint, uint32_t peer);

/*
 * Sends up to `count` datagrams without payload from a subgroup's queue to itself.
 * Returns how many were sent.
 */
uint32_t mmc_verbs_plug(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue,
			uint32_t count);

/* ---- zero-copy receive --------------------------------------------------- */

/* Returns where the payload of a received datagram lies; `head` is its header. */
uint8_t *mmc_verbs_placement_take(struct mmc_verbs *verbs,
				  const struct mmc_verbs_queue *queue,
				  uint32_t slot, uint32_t source,
				  const uint8_t *head, uint32_t nbytes);

/* Ends the pauses of queues, before receives are posted again. */
void mmc_verbs_placement_resume(struct mmc_verbs *verbs);

/*
 * Uses up the aimed slots of paused queues; writes the events of payloads that had to
 * wait. Returns how many.
 */
unsigned mmc_verbs_placement_poll(struct mmc_verbs *verbs,
				  struct mmc_event *events, unsigned nmax);

/* Members of struct mmc_driver, but for the last. */
int mmc_verbs_place(struct mmc_endpoint *endpoint, void *to, const void *from,
		    size_t nbytes, uint64_t cookie);
int mmc_verbs_begin_placement(struct mmc_endpoint *endpoint,
			      const struct mmc_predictor *predictor);
int mmc_verbs_end_placement(struct mmc_endpoint *endpoint, bool forget);
uint64_t mmc_verbs_placement_deadline_ns(struct mmc_endpoint *endpoint);

/* ---- watching ------------------------------------------------------------ */

/* Creates the completion channels. Returns 0 or an error, with the reason set. */
int mmc_verbs_watch_init(struct mmc_verbs *verbs);

/* Destroys the completion channels; no queue may use them any more. */
void mmc_verbs_watch_destroy(struct mmc_verbs *verbs);

/* Takes events of the device and the fabric, without waiting. */
void mmc_verbs_watch_device(struct mmc_verbs *verbs);

/* ---- recovery ------------------------------------------------------------ */

/*
 * Starts a recovery: the port, or what the fabric knows of it, has changed, so that
 * memberships in groups may have ended and groups may have other addresses. With
 * `ahs_stale` the GID may have another index in the port's table, or peers may have
 * other LIDs.
 */
void mmc_verbs_recover_soon(struct mmc_verbs *verbs, bool ahs_stale);

/* Takes the fabric's events about memberships. */
void mmc_verbs_recover_listen(struct mmc_verbs *verbs);

/* Follows `peer` to the LID that a datagram or an offer of it came from, if new. */
void mmc_verbs_follow_lid(struct mmc_verbs *verbs, uint32_t peer, uint16_t lid);

/* Moves the recovery one step on, if it is time. */
void mmc_verbs_recover_poll(struct mmc_verbs *verbs);

/* Returns when mmc_verbs_recover_poll() is due next, or MMC_NEVER_NS. */
uint64_t mmc_verbs_recover_deadline_ns(const struct mmc_verbs *verbs);

bool mmc_verbs_arm(struct mmc_endpoint *endpoint);

unsigned mmc_verbs_fds(struct mmc_endpoint *endpoint, int *fds,
		       unsigned *ncontrol);

#endif
