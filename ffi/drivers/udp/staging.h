/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory in which received datagrams stay until the engine has seen them. The
 * kernel may hand over a run of equally long datagrams from one source, of which the
 * last may be shorter, as one message (GRO). They are taken one by one, where they lie.
 */
#ifndef MMC_DRIVERS_UDP_STAGING_H
#define MMC_DRIVERS_UDP_STAGING_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "core/types.h"
#include "drivers/udp/udp.h"

/* Holds the longest run that the kernel hands over. */
#define MMC_UDP_RUN_BYTES 65536

/* Room for the length of a run's datagrams, which the kernel reports. */
union mmc_udp_run_length {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

struct mmc_udp_staging {
	uint8_t *memory; /* MMC_UDP_BATCH slots, one for each message */
	uint32_t slot_bytes;
	unsigned nreceived;   /* messages received, in the first slots */
	unsigned ntaken;      /* messages that were taken as a whole */
	uint32_t taken_bytes; /* bytes taken of the next message */
	uint32_t ndatagrams;  /* datagrams in the message taken last */
	struct mmsghdr messages[MMC_UDP_BATCH];
	struct iovec pieces[MMC_UDP_BATCH];
	struct sockaddr_in from[MMC_UDP_BATCH];
	union mmc_udp_run_length lengths[MMC_UDP_BATCH];
};

struct mmc_udp_datagram {
	const uint8_t *bytes;
	uint32_t nbytes;
	bool cut; /* it was longer than the slot */
	const struct sockaddr_in *from;
};

/* Makes slots of `slot_bytes`. Returns 0 or -MMC_ENOMEM. */
int mmc_udp_staging_init(struct mmc_udp_staging *staging, uint32_t slot_bytes);

void mmc_udp_staging_destroy(struct mmc_udp_staging *staging);

/* Returns whether there are datagrams to take. */
static inline bool mmc_udp_staging_holds(const struct mmc_udp_staging *staging)
{
	return staging->ntaken < staging->nreceived;
}

/*
 * Gives the slots back if every datagram in them has been taken; the taken ones must
 * not be used any more.
 */
void mmc_udp_staging_reuse(struct mmc_udp_staging *staging);

/*
 * Fetches messages from a socket, without waiting: as many as are likely to bring
 * `nwanted` datagrams, which is not 0. Writes whether the socket may hold more. Returns
 * the number of messages, or -1 with errno.
 */
int mmc_udp_staging_receive(struct mmc_udp_staging *staging, int fd,
			    unsigned nwanted, bool *more);

/* Takes the next datagram. Returns false if there is none. */
bool mmc_udp_staging_take(struct mmc_udp_staging *staging,
			  struct mmc_udp_datagram *datagram);

/*
 * Returns the length of the datagrams in a message of `nbytes`: all of it, unless the
 * kernel reports a length that makes sense.
 */
uint32_t mmc_udp_run_length(struct msghdr *message, uint32_t nbytes);

#endif
