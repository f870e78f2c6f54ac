/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream: operations that all ranks of a team start in the same order. */
#ifndef MPIMCAST_STREAM_H
#define MPIMCAST_STREAM_H

#include <stdint.h>

struct mmc_team;
struct mmc_stream;
struct mmc_failure;

/* The most data chunks of a group, and the most parity chunks that are sent unasked. */
#define MMC_CODE_DATA_MAX 128
#define MMC_CODE_PARITY_MAX 32

/* The options of a stream, all of which are equal on all ranks. */
struct mmc_stream_options {
	uint64_t channel; /* random; the low 16 bits are ignored */
	uint32_t chains;  /* number of chains; 0: chosen by the library */
	/* The most that may be in flight; 0: as measured, and as buffers hold. */
	uint32_t window_bytes;
	/* All blocks together up to this size are sent before the entry barrier. */
	uint32_t eager_bytes;
	uint32_t repair; /* 0 nak, 1 neighbour, 2 read */
	/*
	 * The code: of how many data chunks a group has at most, and how many parity chunks
	 * are sent with it unasked; 0 data chunks: none.
	 */
	uint16_t code_data;
	uint16_t code_parity;
	/*
	 * Whether each operation is coded only if that is forecast to take less time, with
	 * at most `code_parity` parity chunks.
	 */
	uint16_t code_auto;
	/* Whether the engine's coder, which is a thread, computes parity and mends. */
	uint16_t coder;
	/* How long an awaited rank may be silent, or new data fail to arrive. */
	uint64_t timeout_ns;
	/* How long an awaited rank may take to enter; 0: as long as it likes. */
	uint64_t entry_timeout_ns;
	/* How long a rank may be silent whose process exists; 0: for ever. */
	uint64_t late_timeout_ns;
};

/*
 * Creates a stream of `team`, and writes it to `*stream`. Returns 0; -MMC_EINVAL if an
 * option is invalid; the error of a team that has failed; or -MMC_ENOMEM.
 */
int mmc_stream_create(struct mmc_team *team,
		      const struct mmc_stream_options *options,
		      struct mmc_stream **stream);

/*
 * Announces that this rank starts no more operations on the stream: mmc_start() fails
 * with -MMC_EINVAL from now on. Operations that were started continue, and other ranks
 * are still served. If another rank waits for this one in a later operation, that
 * operation fails with -MMC_ELEFT on all ranks.
 */
void mmc_stream_leave(struct mmc_stream *stream);

/*
 * Fails a stream on all ranks, unless it has failed: operations that lack data, and all
 * later ones, fail with `error`, such as -MMC_EGONE, and name this rank as the culprit.
 */
void mmc_stream_fail(struct mmc_stream *stream, int error);

/* Why a stream does not use multicast at present. */
struct mmc_unicast_reason {
	uint32_t epoch;	 /* the first epoch without multicast; 0: it is used */
	uint32_t rank;	 /* the rank that hears no multicast of `sender` */
	uint32_t sender; /* UINT32_MAX: `rank` hears no multicast at all */
};

/* Returns what mmc_stream_unicast_reason() writes to `epoch`. */
uint32_t mmc_stream_unicast_epoch(struct mmc_stream *stream);

/*
 * Writes to `reason` since which epoch blocks have gone from neighbour to neighbour
 * instead of by multicast, and why.
 */
void mmc_stream_unicast_reason(struct mmc_stream *stream,
			       struct mmc_unicast_reason *reason);

/*
 * Frees a stream. Operations in flight are given up: on return their buffers are the
 * program's again. From then on this rank answers nothing about the stream, so all
 * other ranks must have completed its operations, or have failed.
 */
void mmc_stream_close(struct mmc_stream *stream);

/*
 * Writes to `failure` the first failure of a stream, which poisoned it; its error is 0
 * if nothing has failed.
 */
void mmc_stream_failure(struct mmc_stream *stream, struct mmc_failure *failure);

#endif
