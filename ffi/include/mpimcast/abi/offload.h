/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The offload ABI: how a process has its operations carried out by a runner, which is a
 * proxy (mpimcast/proxy.h) or the firmware of a network adapter. The process that starts
 * the operations is the host.
 *
 * Host and runner share memory, the bridge, which serves one team. The host puts
 * commands in a ring; the runner puts a completion in another ring when an operation has
 * ended. All else is a call: the host writes arguments to the mailbox, and waits until
 * the runner has written the answer there. One call is made at a time.
 *
 * A host can ask a proxy to show which chunks of a result are present while the operation
 * goes on. The proxy then sets bits in memory that they share, each after all bytes of its
 * chunk are in their place, and counts in `nshown` that it has done so. Bits are stored in
 * release order, so a host that loads one in acquire order sees the chunk as well.
 *
 * All numbers are little-endian. Nothing in a bridge is an address: memory is named by
 * the number of a region, and an offset in it. The runner believes nothing that it reads
 * in a bridge before it has checked it.
 *
 * Doorbells: a side that has put something in a ring, or has called or answered, rings
 * for the other side only if that is armed. A side that wants to sleep arms itself, and
 * then looks once more; a side that rings publishes first, and then looks whether the
 * other one is armed. All these accesses are sequentially consistent, so at least one
 * side sees what the other has written, and no ring is lost.
 */
#ifndef MPIMCAST_OFFLOAD_H
#define MPIMCAST_OFFLOAD_H

#include <mpimcast/counters.h>
#include <mpimcast/errors.h>
#include <mpimcast/request.h>
#include <mpimcast/stream.h>
#include <mpimcast/survey.h>
#include <mpimcast/team.h>
#include <stdint.h>

#define MMC_OFFLOAD_MAGIC UINT32_C(0x4f434d4d) /* "MMCO" */

/* To be raised with every change to this header, or to a structure that it embeds. */
#define MMC_OFFLOAD_VERSION UINT32_C(4)

/* The most operations of a bridge that may be in flight. */
#define MMC_OFFLOAD_REQUESTS 256

/*
 * Entries of the ring of commands: two for each operation, and one for a call. A power of
 * two.
 */
#define MMC_OFFLOAD_COMMANDS 1024

/* The most streams, and the most regions, that a bridge may have. */
#define MMC_OFFLOAD_STREAMS 1024
#define MMC_OFFLOAD_REGIONS 1024

#define MMC_OFFLOAD_NOWHERE UINT32_MAX /* in place of a region: no memory */

/* Bytes of the text that goes with an error, with its final 0. */
#define MMC_OFFLOAD_TEXT_SIZE 512

/* A place in memory that host and runner share. */
struct mmc_offload_place {
	uint32_t region; /* or MMC_OFFLOAD_NOWHERE */
	uint32_t reserved;
	uint64_t offset_bytes;
};

enum mmc_offload_command_kind {
	MMC_OFFLOAD_START = 1, /* begin an operation */
	MMC_OFFLOAD_CALL = 2,  /* look in the mailbox */
	/*
	 * Show which chunks are present of an operation in flight, for which this is
	 * asked once at most. Is ignored if the operation has ended. An adapter does
	 * not know this command.
	 */
	MMC_OFFLOAD_SHOW = 3,
};

/*
 * A command of the host. For MMC_OFFLOAD_CALL only `kind` and `call` have a meaning; for
 * MMC_OFFLOAD_SHOW `kind`, `request`, `nchunks` and `bits`.
 */
struct mmc_offload_command {
	uint32_t kind;	    /* enum mmc_offload_command_kind */
	uint32_t call;	    /* enum mmc_offload_call_kind */
	uint32_t stream;    /* the host's number of the stream */
	uint32_t request;   /* the host's number of the operation */
	uint32_t operation; /* enum mmc_kind */
	uint32_t root;	    /* as in struct mmc_operation */
	uint64_t block_bytes;
	/* The result, in which this rank's block is in its place. */
	struct mmc_offload_place recv;
	/*
	 * For an Allgatherv: the bytes of each block, then for each block at how many
	 * bytes from `recv` it begins; both are uint64_t [nranks].
	 */
	struct mmc_offload_place tables;
	uint32_t partial; /* whether MMC_OFFLOAD_SHOW may follow */
	/*
	 * The chunks of the operation, and a bit for each, 0 at first, in words of 64 of
	 * which the lowest bit is the first; a multiple of 8 bytes from the region's
	 * beginning. The chunks of each block follow those of the rank before; each block
	 * begins a new chunk.
	 */
	uint32_t nchunks;
	struct mmc_offload_place bits;
	uint8_t reserved[40];
};

/* The end of an operation, from which on the runner does not touch its memory. */
struct mmc_offload_completion {
	uint32_t request;
	uint32_t reserved;
	uint32_t stream;
	/* What mmc_stream_unicast_epoch() returns now. */
	uint32_t unicast_epoch;
	struct mmc_failure failure;
};

/* A ring for one producer and one consumer. Each counter has its own cache line. */
struct mmc_offload_ring {
	_Alignas(64) uint32_t nproduced; /* entries put in, mod 2^32 */
	_Alignas(64) uint32_t nconsumed; /* entries taken out, likewise */
	_Alignas(64) uint32_t armed; /* whether the consumer must be rung for */
};

/*
 * What the host can ask for. After each kind follow, in `body`, the arguments and then
 * the answer; a `stream` or `request` is that of struct mmc_offload_mailbox.
 */
enum mmc_offload_call_kind {
	MMC_OFFLOAD_OPEN = 1, /* struct mmc_team_options; uint8_t [address] */
	MMC_OFFLOAD_PROTECT = 2,  /* uint8_t [MMC_SECRET_BYTES]; - */
	MMC_OFFLOAD_CONNECT = 3,  /* uint8_t [nranks][address]; - */
	MMC_OFFLOAD_PROBE = 4,	  /* uint64_t slice_ns; struct mmc_probe */
	MMC_OFFLOAD_SURVEY = 5,	  /* uint32_t id, nnumbers; - */
	MMC_OFFLOAD_BURST = 6,	  /* struct mmc_burst; - */
	MMC_OFFLOAD_LISTEN = 7,	  /* uint64_t slice_ns; struct mmc_hearing [] */
	MMC_OFFLOAD_COUNTERS = 8, /* -; uint64_t [mmc_counter_count()] */
	MMC_OFFLOAD_STRANGERS = 9, /* -; struct mmc_stranger [] */
	MMC_OFFLOAD_CREATE = 10,   /* stream: struct mmc_stream_options; - */
	MMC_OFFLOAD_LEAVE = 11,	   /* stream: -; - */
	MMC_OFFLOAD_FAIL = 12,	   /* stream: int32_t error; - */
	MMC_OFFLOAD_CLOSE = 13,	   /* stream: -; - */
	MMC_OFFLOAD_FAILURE = 14,  /* stream: -; struct mmc_failure */
	MMC_OFFLOAD_UNICAST = 15,  /* stream: -; struct mmc_unicast_reason */
	MMC_OFFLOAD_COUNT = 16,	 /* stream: -; uint64_t [mmc_counter_count()] */
	MMC_OFFLOAD_CANCEL = 17, /* request: -; - and it has completed */
	MMC_OFFLOAD_WAITING = 18,  /* request: -; struct mmc_waiting */
	MMC_OFFLOAD_REGION = 19,   /* uint64_t number, nbytes; - */
	MMC_OFFLOAD_UNREGION = 20, /* uint64_t number; - */
};

/* The mailbox: the arguments of the call in progress, or the answer to the last one. */
struct mmc_offload_mailbox {
	_Alignas(64) uint32_t ncalled; /* the number of the latest call */
	uint32_t stream;
	uint32_t request;
	uint32_t body_bytes;		  /* of the arguments or the answer */
	_Alignas(64) uint32_t nanswered;  /* of the last answered call */
	int32_t status;			  /* 0, or a negative enum mmc_error */
	char text[MMC_OFFLOAD_TEXT_SIZE]; /* of a call that has failed */
	_Alignas(64) uint8_t body[];
};

struct mmc_offload_bridge {
	uint32_t magic;	  /* MMC_OFFLOAD_MAGIC */
	uint32_t version; /* MMC_OFFLOAD_VERSION */
	/*
	 * A host whose operations take long beats now and then; the runner repeats its
	 * latest beat. One that does not has stopped.
	 */
	_Alignas(64) uint32_t host_beat;
	_Alignas(64) uint32_t runner_beat;
	struct mmc_offload_ring commands;
	struct mmc_offload_ring completions;
	/*
	 * How often the runner has set bits of chunks, mod 2^32. It rings for that as for a
	 * completion.
	 */
	_Alignas(64) uint32_t nshown;
	struct mmc_offload_command command[MMC_OFFLOAD_COMMANDS];
	struct mmc_offload_completion completion[MMC_OFFLOAD_REQUESTS];
	struct mmc_offload_mailbox mailbox;
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the ABI has no other order");
_Static_assert(sizeof(struct mmc_offload_command) == 128, "version 4");
_Static_assert(sizeof(struct mmc_offload_completion) == 64, "version 4");
_Static_assert(sizeof(struct mmc_offload_ring) == 192, "version 4");
_Static_assert(sizeof(struct mmc_stream_options) == 56, "version 4");
_Static_assert(sizeof(struct mmc_team_options) == 952, "version 4");
_Static_assert(sizeof(struct mmc_failure) == 48, "version 4");
_Static_assert(sizeof(struct mmc_unicast_reason) == 12, "version 4");
_Static_assert(sizeof(struct mmc_probe) == 12, "version 4");
_Static_assert(sizeof(struct mmc_burst) == 20, "version 4");
_Static_assert(sizeof(struct mmc_hearing) == 40, "version 4");
_Static_assert(sizeof(struct mmc_waiting) == 32, "version 4");
_Static_assert(sizeof(struct mmc_stranger) == 72, "version 4");

#endif
