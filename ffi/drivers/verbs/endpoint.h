/* SPDX-License-Identifier: BSD-3-Clause */
/* What an endpoint of the verbs driver consists of; private to the driver. */
#ifndef MMC_DRIVERS_VERBS_ENDPOINT_H
#define MMC_DRIVERS_VERBS_ENDPOINT_H

#include "drivers/verbs/connections.h"
#include "drivers/verbs/groups.h"
#include "drivers/verbs/peers.h"
#include "drivers/verbs/queue.h"
#include "drivers/verbs/reads.h"
#include "drivers/verbs/reconnect.h"
#include "drivers/verbs/verbs.h"

/* A rank that cannot be addressed is not tried again before this time. */
#define MMC_VERBS_RETRY_NS (5 * MMC_S_NS)

/* How long send() waits for room in a queue. */
#define MMC_VERBS_ROOM_NS (100 * MMC_MS_NS)

/* What is known of another rank. */
struct mmc_verbs_rank {
	uint8_t gid[MMC_VERBS_GID_BYTES];
	uint16_t lid;
	uint32_t unicast_qpn;
	struct ibv_ah *way; /* of unicast datagrams; NULL before the first, */
	uint64_t retry_ns;  /* and if it could not be found before then */
	struct mmc_verbs_connection *connection; /* NULL if not a partner */
};

struct mmc_verbs {
	struct mmc_endpoint endpoint;
	struct mmc_driver driver; /* what the options leave of it */
	struct mmc_verbs_port port;
	struct mmc_verbs_address own;

	struct ibv_comp_channel *control; /* of connections and `unicast` */
	struct ibv_comp_channel *data;	  /* of the groups' queues */
	bool armed; /* since the last poll that found any */

	struct mmc_verbs_connections connections;
	struct mmc_verbs_reads reads;
	struct mmc_verbs_queue unicast;
	struct mmc_verbs_queue *queues; /* of each subgroup */
	struct ibv_ah **ways;		/* and of what is sent to it */
	uint32_t nattached;
	struct mmc_verbs_groups groups;

	struct mmc_verbs_peers peers;
	struct mmc_verbs_rank *ranks;

	struct mmc_covers covers; /* with zero-copy receive */

	uint32_t turn; /* which subgroup poll() serves first */
	uint32_t npolls;

	uint64_t recover_ns; /* when memberships are made anew, or NEVER; */
	bool moved;	     /* ways, too */

	/* What has broken the endpoint as a whole; "" if nothing has. */
	char failure[256];
	bool told; /* of that */
};

static inline struct mmc_verbs *mmc_verbs_of(struct mmc_endpoint *endpoint)
{
	return (struct mmc_verbs *)endpoint;
}

/* Nothing goes in or out any more: the first reason stays. */
__attribute__((format(printf, 2, 3))) void
mmc_verbs_fail(struct mmc_verbs *verbs, const char *format, ...);

/* A queue's requests end with `status`: it is down, if that may pass, or fails. */
void mmc_verbs_break_queue(struct mmc_verbs *verbs,
			   struct mmc_verbs_queue *queue,
			   enum ibv_wc_status status);

/* Ends the endpoint, as a queue has ended with its status. */
void mmc_verbs_fail_queue(struct mmc_verbs *verbs,
			  const struct mmc_verbs_queue *queue);

int mmc_verbs_connect(struct mmc_endpoint *endpoint, const uint8_t *addresses);

/* Finds the way of unicast datagrams to a rank; false if there is none. */
bool mmc_verbs_find_way(struct mmc_verbs *verbs, struct mmc_verbs_rank *rank);

int mmc_verbs_poll(struct mmc_endpoint *endpoint, struct mmc_event *events,
		   unsigned nmax);

int mmc_verbs_send(struct mmc_endpoint *endpoint,
		   const struct mmc_parcel *parcels, unsigned nparcels);

/*
 * Sends a datagram of the driver's own to a rank, which may be lost: other than
 * those of the engine it has no immediate.
 */
void mmc_verbs_tell(struct mmc_verbs *verbs, uint32_t peer,
		    const uint8_t *bytes, uint32_t nbytes);

/*
 * Waits until all that was sent by a queue has left; false if that takes too
 * long, or the queue is broken.
 */
bool mmc_verbs_settle(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue);

void mmc_verbs_inquire(struct mmc_endpoint *endpoint, uint32_t peer);

/*
 * Sends up to `count` datagrams without payload from a subgroup's queue to
 * itself. Returns how many.
 */
uint32_t mmc_verbs_plug(struct mmc_verbs *verbs, struct mmc_verbs_queue *queue,
			uint32_t count);

/* ---- zero-copy receive --------------------------------------------------- */

/* Where the payload is of a datagram, `head` its header, that has come. */
uint8_t *mmc_verbs_cover_take(struct mmc_verbs *verbs,
			      const struct mmc_verbs_queue *queue,
			      uint32_t slot, uint32_t source,
			      const uint8_t *head, uint32_t nbytes);

/* Predicts anew, before receives are posted again. */
void mmc_verbs_cover_resume(struct mmc_verbs *verbs);

/*
 * Goes on with what was mispredicted; writes events of placements that had to
 * wait, and returns how many.
 */
unsigned mmc_verbs_cover_poll(struct mmc_verbs *verbs, struct mmc_event *events,
			      unsigned nmax);

/* For struct mmc_driver. */
int mmc_verbs_place(struct mmc_endpoint *endpoint, void *to, const void *from,
		    size_t nbytes, uint64_t cookie);
int mmc_verbs_cover(struct mmc_endpoint *endpoint,
		    const struct mmc_cover *plan);
int mmc_verbs_uncover(struct mmc_endpoint *endpoint, bool forget);
uint64_t mmc_verbs_cover_deadline_ns(struct mmc_endpoint *endpoint);

/* ---- watching ------------------------------------------------------------ */

/* Creates the channels. Returns 0 or an error told. */
int mmc_verbs_watch_init(struct mmc_verbs *verbs);

/* Destroys them; no queue completes to them any more. */
void mmc_verbs_watch_destroy(struct mmc_verbs *verbs);

/* Takes what the device and the fabric tell, without waiting. */
void mmc_verbs_watch_device(struct mmc_verbs *verbs);

/* ---- recovery ------------------------------------------------------------ */

/*
 * The port, or what the fabric knows of it, is not what it was: memberships in
 * groups may have ended and ways lead elsewhere. `moved`: its GID may have gone
 * to another place of its table, or peers to other ports.
 */
void mmc_verbs_recover_soon(struct mmc_verbs *verbs, bool moved);

/* Hears what the fabric tells of memberships. */
void mmc_verbs_recover_listen(struct mmc_verbs *verbs);

/* A datagram of `peer` has come from this LID, which may be a new one. */
void mmc_verbs_follow_lid(struct mmc_verbs *verbs, uint32_t peer, uint16_t lid);

/* Makes anew what is to be, if it is time. */
void mmc_verbs_recover_poll(struct mmc_verbs *verbs);

/* When that is to be called next, or MMC_NEVER_NS. */
uint64_t mmc_verbs_recover_deadline_ns(const struct mmc_verbs *verbs);

bool mmc_verbs_arm(struct mmc_endpoint *endpoint);

unsigned mmc_verbs_fds(struct mmc_endpoint *endpoint, int *fds,
		       unsigned *ncontrol);

#endif
