/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The header that begins every datagram on every transport, in network order:
 *
 *      0                8            12           16
 *     | channel u64     | epoch u32  | index u32  | payload or message ...
 *
 * The two highest bits of the index tell what follows, so that counters, filters and
 * monitors need nothing but the header:
 *
 *     00 index of a chunk, sent for the first time      (30 bits)
 *     01 index of a chunk, sent again as a repair       (30 bits)
 *     10 kind of a control message (see message.h)      (30 bits)
 *     11 parity chunk of a group of the sender's block: 0, or 1 if it is sent on
 *        request; the group's number                    (21 bits)
 *        and the row of parity                          (8 bits)
 *
 * Datagrams on a team's own channel have the index of a control message. Those of kind
 * 0 are probes: the epoch is the subgroup, and padding follows. Those of other kinds
 * belong to a survey (engine/survey.c): the epoch is the datagram's number.
 *
 * The low 16 bits of a channel are clear. On the wire they hold a checksum of the
 * header and the datagram's length, unless CHECKSUM=off. With CHECKSUM=full a CRC32C
 * (u32) of header and payload, which the engine computes, stands between header and
 * payload.
 */
#ifndef MMC_CORE_WIRE_HEADER_H
#define MMC_CORE_WIRE_HEADER_H

#include "core/types.h"
#include "support/memory.h"

enum {
	MMC_HEADER_BYTES = 16,
	MMC_CRC_BYTES = 4, /* CRC32C behind the header under CHECKSUM=full */
};

/*
 * The longest control message with its header, without a CRC. It is a report: three
 * numbers, and one for each chain, of 4 bytes each.
 */
#define MMC_MESSAGE_BYTES_MAX (MMC_HEADER_BYTES + 4 * (3 + MMC_CHAINS_MAX))

/* The bits of a channel that are not the checksum's. */
#define MMC_CHANNEL_MASK (~UINT64_C(0xffff))

/* The bits of an index that tell what follows, and those for a chunk or a kind. */
#define MMC_INDEX_CONTROL UINT32_C(0x80000000)
#define MMC_INDEX_REPAIR UINT32_C(0x40000000)
#define MMC_INDEX_MASK UINT32_C(0x3fffffff)

/* The form of a parity chunk, and the bit for one on request. */
#define MMC_INDEX_PARITY (MMC_INDEX_CONTROL | MMC_INDEX_REPAIR)
#define MMC_INDEX_ON_REQUEST UINT32_C(0x20000000)
#define MMC_INDEX_GROUP_SHIFT 8
#define MMC_INDEX_ROW_MASK UINT32_C(0xff)

struct mmc_header {
	uint64_t channel;
	uint32_t epoch;
	uint32_t index;
};

/* The kinds of datagrams that are counted apart, and that the header alone tells. */
enum mmc_traffic {
	MMC_TRAFFIC_MULTICAST, /* chunks for the first time, and their parity */
	MMC_TRAFFIC_CONTROL,   /* control messages */
	MMC_TRAFFIC_REPAIR, /* chunks that are sent again, parity on request */
	MMC_TRAFFIC_COUNT,
};

/* Return whether a header with this index is a control message's, or a parity chunk's. */
static inline bool mmc_header_is_control(uint32_t index)
{
	return index - MMC_INDEX_CONTROL < MMC_INDEX_REPAIR;
}

static inline bool mmc_header_is_parity(uint32_t index)
{
	return index >= MMC_INDEX_PARITY;
}

/* Returns the kind of a datagram whose header has this index. */
static inline enum mmc_traffic mmc_header_traffic(uint32_t index)
{
	if (!(index & MMC_INDEX_CONTROL))
		return index & MMC_INDEX_REPAIR ? MMC_TRAFFIC_REPAIR
						: MMC_TRAFFIC_MULTICAST;
	if (mmc_header_is_control(index))
		return MMC_TRAFFIC_CONTROL;
	return index & MMC_INDEX_ON_REQUEST ? MMC_TRAFFIC_REPAIR
					    : MMC_TRAFFIC_MULTICAST;
}

/*
 * Writes the header of a datagram of `datagram_bytes` in all, header and CRC included,
 * to `bytes`, MMC_HEADER_BYTES long.
 */
void mmc_header_encode(uint8_t *bytes, const struct mmc_header *header,
		       size_t datagram_bytes, enum mmc_checksum checksum);

/*
 * Reads the header of a received datagram of `datagram_bytes`. Returns 0, -MMC_ESHORT
 * if it is shorter than its header and CRC, or -MMC_ECORRUPT if the 16-bit checksum is
 * wrong. `header` is written only on success.
 */
int mmc_header_decode(struct mmc_header *header, const uint8_t *bytes,
		      size_t datagram_bytes, enum mmc_checksum checksum);

/* Eight bytes of memory that has another type. */
typedef uint64_t __attribute__((may_alias)) mmc_word;

/*
 * Write and read a number in network order. They go byte by byte, since bare targets
 * have no function to swap bytes.
 */
static inline void mmc_put_u32(uint8_t *bytes, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

static inline void mmc_put_u64(uint8_t *bytes, uint64_t value)
{
	mmc_put_u32(bytes, (uint32_t)(value >> 32));
	mmc_put_u32(bytes + 4, (uint32_t)value);
}

static inline uint32_t mmc_get_u32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
	       (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline uint64_t mmc_get_u64(const uint8_t *bytes)
{
	return (uint64_t)mmc_get_u32(bytes) << 32 | mmc_get_u32(bytes + 4);
}

/* A header as two numbers. */
struct mmc_header_words {
	uint64_t channel; /* with the checksum */
	uint64_t rest;	  /* the epoch, and below it the index */
};

/* Does what mmc_header_words() does, a byte at a time. */
struct mmc_header_words mmc_header_words_by_byte(const uint8_t *bytes);

/* Returns the header at `bytes`, MMC_HEADER_BYTES long, without checking anything. */
static inline struct mmc_header_words mmc_header_words(const uint8_t *bytes)
{
#ifdef __riscv_zbb
	/* Here words have to be aligned to be read at once; devices align headers. */
	const mmc_word *words = (const void *)bytes;

	if (__builtin_expect((uintptr_t)bytes % sizeof(*words) != 0, false))
		return mmc_header_words_by_byte(bytes);
	return (struct mmc_header_words){
		.channel = __builtin_bswap64(words[0]),
		.rest = __builtin_bswap64(words[1]),
	};
#else
	return (struct mmc_header_words){
		.channel = mmc_get_u64(bytes),
		.rest = mmc_get_u64(bytes + 8),
	};
#endif
}

/*
 * Returns the header at `bytes`, MMC_HEADER_BYTES long, without checking anything. The
 * low 16 bits of its channel hold the checksum as it was received.
 */
static inline struct mmc_header mmc_header_peek(const uint8_t *bytes)
{
	const struct mmc_header_words words = mmc_header_words(bytes);

	return (struct mmc_header){
		.channel = words.channel,
		.epoch = (uint32_t)(words.rest >> 32),
		.index = (uint32_t)words.rest,
	};
}

/*
 * The headers of datagrams that are equally long and differ in their index alone, such as
 * those of a run of chunks. Only the index and the checksum have to be patched in.
 */
struct mmc_header_template {
	struct mmc_header_words words;	 /* of the header with index 0 */
	uint64_t mask;			 /* of the checksum in `channel` */
	uint8_t bytes[MMC_HEADER_BYTES]; /* the header with index 0 */
};

/* Returns the template of datagrams like one with `header`, whatever its index. */
struct mmc_header_template mmc_header_template(const struct mmc_header *header,
					       size_t datagram_bytes,
					       enum mmc_checksum checksum);

/*
 * Returns the channel, with the checksum, of the header whose second number is `rest`. It
 * depends on the index alone, so that `rest` may lack the epoch.
 */
static inline uint64_t
mmc_header_channel(const struct mmc_header_template *template, uint64_t rest)
{
	return template->words.channel ^ ((rest ^ rest >> 16) & template->mask);
}

/* Writes the header that has `index` to `bytes`, as mmc_header_encode() would. */
static inline void mmc_header_write(const struct mmc_header_template *template,
				    uint8_t *bytes, uint32_t index)
{
	uint64_t channel = mmc_header_channel(template, index);

	memcpy(bytes, template->bytes, MMC_HEADER_BYTES);
	bytes[6] = (uint8_t)(channel >> 8);
	bytes[7] = (uint8_t)channel;
	mmc_put_u32(bytes + 12, index);
}

/*
 * Returns whether the header of a received datagram, which is as long as the template
 * says, is the one that has `index`. If so, mmc_header_decode() would accept it.
 */
static inline bool
mmc_header_matches(const struct mmc_header_template *template,
		   const uint8_t *bytes, uint64_t index)
{
	const struct mmc_header_words found = mmc_header_words(bytes);
	uint64_t rest = template->words.rest | index;

	return found.channel == mmc_header_channel(template, rest) &&
	       found.rest == rest;
}

#endif
