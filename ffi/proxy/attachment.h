/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An attachment: a team of some rank, which a thread of the proxy serves. The thread owns
 * an engine, makes progress for it alone, and sleeps in between.
 */
#ifndef MMC_PROXY_ATTACHMENT_H
#define MMC_PROXY_ATTACHMENT_H

#include <mpimcast/abi/offload.h>

struct mmc_attachment {
	struct mmc_attachment *next; /* in the proxy's list */
	int socket;		     /* to the rank; it is the attachment's */
	int wake_fd;		     /* the thread's bell */
};

/*
 * Attaches the rank that is about to ask for it on `socket`, and starts to serve its team.
 * Returns 0 with `*attachment` written, which owns the socket; or a negative error, also
 * if the rank only wanted to know who is there.
 */
int mmc_attachment_open(int socket, struct mmc_attachment **attachment);

/*
 * Ends the thread, gives up the rank's operations in flight, closes its team, and frees
 * the attachment.
 */
void mmc_attachment_close(struct mmc_attachment *attachment);

#endif
