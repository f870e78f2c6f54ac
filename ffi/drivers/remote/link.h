/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host's end of a bridge of the offload ABI: its connection to the process that
 * carries out its operations, or that has an adapter do so. What that process writes in
 * the bridge is not believed further than its answers can be checked.
 */
#ifndef MMC_DRIVERS_REMOTE_LINK_H
#define MMC_DRIVERS_REMOTE_LINK_H

#include <mpimcast/abi/offload.h>
#include <stdbool.h>
#include <stddef.h>

struct mmc_link {
	struct mmc_runner runner;
	int socket;    /* becomes readable when the runner has ended */
	int bell_fd;   /* the runner rings it for this process */
	int runner_fd; /* this process rings it for the runner */
	struct mmc_offload_bridge *bridge;
	uint8_t *mapped; /* the bridge's file, or an adapter's memory */
	size_t mapped_bytes;
	uint8_t *region; /* region 0, in an adapter's memory; else NULL */
	uint64_t region_bytes;
	uint64_t timeout_ns; /* the longest that an answer may take */
	uint64_t looked_ns;  /* the last look whether the runner exists */
	uint32_t ninflight;  /* operations that the runner has */
	uint32_t nshown;     /* the bridge's count when it was last read */
	uint64_t beat_ns;    /* when to beat, or look for a beat, next */
	uint32_t nmissed; /* looks at which the latest beat was not repeated */
	bool broken;	  /* the runner has ended, or does not answer */
};

/* A call: see enum mmc_offload_call_kind. */
struct mmc_link_call {
	uint32_t kind;
	uint32_t stream;
	uint32_t request;
	const void *arguments; /* NULL: none, or in the mailbox already */
	uint32_t argument_bytes;
	void *answer; /* NULL: it is read from the mailbox, or there is none */
	uint32_t answer_bytes; /* the most that is copied to `answer` */
	uint64_t takes_ns;     /* how long the runner may be busy with it */
};

/*
 * Connects to the runner that listens as `name`, and passes it a new bridge whose mailbox
 * takes `mailbox_bytes`; 0: only asks who it is, and creates no bridge. Returns 0;
 * -MMC_ENODEV if nobody has that name; or -MMC_EINVAL, -MMC_ENOMEM or -MMC_EIO, with the
 * reason in mmc_last_error().
 */
int mmc_link_open(const char *name, size_t mailbox_bytes, uint64_t timeout_ns,
		  struct mmc_link *link);

/* Returns the mailbox's body, where long arguments and answers lie. */
uint8_t *mmc_link_mailbox(const struct mmc_link *link);

/* Puts a command in the ring, which has room for all that can be in flight. */
void mmc_link_post(struct mmc_link *link,
		   const struct mmc_offload_command *command);

/*
 * Makes a call and waits for its answer. Returns the answer's status with its text in
 * mmc_last_error(), or -MMC_EIO if the runner has ended or does not answer.
 */
int mmc_link_call(struct mmc_link *link, const struct mmc_link_call *call);

/*
 * Passes the file `fd` to the runner as region `number`, `nbytes` long. Returns 0 or a
 * negative error.
 */
int mmc_link_share(struct mmc_link *link, uint32_t number, int fd,
		   uint64_t nbytes);

/* Takes a completion out of the ring. Returns whether there was one. */
bool mmc_link_take(struct mmc_link *link,
		   struct mmc_offload_completion *completion);

/*
 * Returns whether the runner has set bits of chunks since the last call: they are to be
 * looked at now.
 */
bool mmc_link_has_shown(struct mmc_link *link);

/*
 * Has the runner ring from now on, so that the caller can sleep on the bell and the
 * socket. Returns true if a completion or a new bit is there already: the caller must not
 * sleep then.
 */
bool mmc_link_arm(struct mmc_link *link);

/*
 * Looks now and then, by the time `now_ns`, whether the runner still exists, and, if it
 * has operations, whether it still answers. Returns false once it does not, with the
 * reason in mmc_last_error().
 */
bool mmc_link_is_whole(struct mmc_link *link, uint64_t now_ns);

/* Ends the connection and unmaps the bridge: the runner gives up what is in flight. */
void mmc_link_close(struct mmc_link *link);

#endif
