/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages: the bytes after a header whose index has MMC_INDEX_CONTROL.
 *
 *      16     20      24    ...             88
 *     | stamp | echo  | the sender's record, a late rank | the kind's items ...
 *
 * REPORT and WATERMARK alone are shorter (core/wire/report.h).
 *
 * A message with a stamp asks for an answer, which echoes the stamp. The answer
 * measures the round trip, and proves that the process lives that was asked.
 */
#ifndef MMC_CORE_WIRE_MESSAGE_H
#define MMC_CORE_WIRE_MESSAGE_H

#include "core/wire/advert.h"
#include "core/wire/header.h"
#include "core/wire/record.h"

enum mmc_message_kind {
	MMC_MESSAGE_RECORD, /* the record alone */
	MMC_MESSAGE_NAK,    /* runs that the sender lacks */
	MMC_MESSAGE_NCF,    /* runs that the sender will multicast again */
	/* For each chain the least position of a subtree. */
	MMC_MESSAGE_REPORT,
	/* For each chain the least position of all ranks. */
	MMC_MESSAGE_WATERMARK,
	MMC_MESSAGE_DIRECT_NAK, /* a NAK to be answered by unicast */
	MMC_MESSAGE_ADVERT,	/* the memory of the sender that may be read */
	MMC_MESSAGE_SENT, /* how much other ranks have sent, as far as known */
	MMC_MESSAGE_BLOCKS, /* blocks, of which the entry barrier's messages carry some */
	MMC_MESSAGE_COUNT,
};

/* That `rank` has sent at least the first `nchunks` chunks of its block. */
struct mmc_sent {
	uint32_t rank;
	uint32_t nchunks;
};

/* The most ranks that one SENT lists. */
#define MMC_SENT_MAX 64

struct mmc_message {
	enum mmc_message_kind kind;
	uint32_t stamp_us; /* the asker's clock; 0: no answer is wanted */
	uint32_t echo_us;  /* the stamp that this answers; 0: none */
	struct mmc_record record;
	/*
	 * A rank whose process exists but does not answer, and how long ago that was
	 * last found, as far as the sender knows. This is not part of the record, which
	 * only grows, whereas a late rank may answer again.
	 */
	uint32_t late_rank;
	uint32_t late_age_ms; /* 0: no rank is known to be late */
	/* How many of the following; 1 for an advert. Blocks count in bytes. */
	uint32_t nitems;
	union {
		struct mmc_advert advert;
		struct mmc_run runs[MMC_RUNS_MAX];
		uint32_t positions[MMC_CHAINS_MAX];
		struct mmc_sent sent[MMC_SENT_MAX];
		/*
		 * The bytes of the blocks, in the message that was decoded. When one is
		 * encoded, NULL leaves them to be written by the caller.
		 */
		const uint8_t *blocks;
	};
};

/* The bytes between header and items in all messages but REPORT and WATERMARK. */
#define MMC_MESSAGE_BYTES 72

/* The most bytes of blocks that a message carries. */
#define MMC_BLOCKS_BYTES_MAX                                                   \
	(MMC_MESSAGE_BYTES_MAX - MMC_HEADER_BYTES - MMC_MESSAGE_BYTES)

/* Returns the bytes that `message` takes behind its header. */
size_t mmc_message_bytes(const struct mmc_message *message);

/* Writes `message`, mmc_message_bytes() long, to `bytes`. */
void mmc_message_encode(uint8_t *bytes, const struct mmc_message *message);

/*
 * Reads a message of `kind`, which is the header's index without MMC_INDEX_CONTROL,
 * from the `nbytes` that follow the header, and to which blocks refer. Returns 0, -MMC_ESHORT if its length does
 * not agree with its fields, or -MMC_EINVAL if the kind is unknown or a field is out of
 * its range. `message` is written only on success.
 */
int mmc_message_decode(struct mmc_message *message, uint32_t kind,
		       const uint8_t *bytes, size_t nbytes);

#endif
