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
	/* A part of the blocks that a round brings; without bytes a question for it. */
	MMC_MESSAGE_BLOCKS,
	MMC_MESSAGE_COUNT,
};

/* That `rank` has sent at least the first `nchunks` chunks of its block. */
struct mmc_sent {
	uint32_t rank;
	uint32_t nchunks;
};

/*
 * A part of the blocks that a message of a barrier carries: its first byte among all
 * bytes of these blocks, and the bytes of the part, in the message that was decoded.
 * When one is encoded, NULL leaves them to be written by the caller.
 */
struct mmc_part {
	uint32_t first;
	const uint8_t *bytes;
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
	/* How many of the following; 1 for an advert. A part counts in bytes. */
	uint32_t nitems;
	union {
		struct mmc_advert advert;
		struct mmc_run runs[MMC_RUNS_MAX];
		uint32_t positions[MMC_CHAINS_MAX];
		struct mmc_sent sent[MMC_SENT_MAX];
		struct mmc_part part;
	};
};

/* The bytes between header and items in all messages but REPORT and WATERMARK. */
#define MMC_MESSAGE_BYTES 72

/* The bytes of BLOCKS between those and the bytes of its part. */
#define MMC_PART_HEAD_BYTES 4

/*
 * The bytes of each part but the last, and the most parts: the kernel takes as many
 * datagrams at once, and a batch has as many chunks.
 */
#define MMC_PART_BYTES                                                         \
	(MMC_MESSAGE_BYTES_MAX - MMC_HEADER_BYTES - MMC_MESSAGE_BYTES -        \
	 MMC_PART_HEAD_BYTES)
#define MMC_PARTS_MAX 20

/* Returns where the part of `message` begins that it brings or asks for; 0: it has none. */
static inline uint32_t mmc_message_first(const struct mmc_message *message)
{
	return message->kind == MMC_MESSAGE_BLOCKS ? message->part.first : 0;
}

/* Returns whether `message` brings a part of blocks; if not, it may ask for some. */
static inline bool mmc_message_brings(const struct mmc_message *message)
{
	return message->kind == MMC_MESSAGE_BLOCKS && message->nitems > 0;
}

/* Returns the bytes that `message` takes behind its header. */
size_t mmc_message_bytes(const struct mmc_message *message);

/*
 * Makes of `bytes`, which hold a BLOCKS behind its header, one whose part begins with
 * byte number `first` and has `nbytes`. These are to follow.
 */
void mmc_message_set_part(uint8_t *bytes, uint32_t first, uint32_t nbytes);

/* Writes `message`, mmc_message_bytes() long, to `bytes`. */
void mmc_message_encode(uint8_t *bytes, const struct mmc_message *message);

/*
 * Reads a message of `kind`, which is the header's index without MMC_INDEX_CONTROL,
 * from the `nbytes` that follow the header, and to which a part refers. Returns 0,
 * -MMC_ESHORT if its length does not agree with its fields, or -MMC_EINVAL if the kind
 * is unknown or a field is out of its range. `message` is written only on success.
 */
int mmc_message_decode(struct mmc_message *message, uint32_t kind,
		       const uint8_t *bytes, size_t nbytes);

#endif
