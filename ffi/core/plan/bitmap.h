/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bitmap with one bit for each chunk, in 64-bit words; chunk 0 has the lowest bit of
 * word 0. Peers may read these words over the network while this rank changes them,
 * hence mmc_bitmap_publish().
 */
#ifndef MMC_CORE_PLAN_BITMAP_H
#define MMC_CORE_PLAN_BITMAP_H

#include "core/types.h"

struct mmc_bitmap {
	uint64_t *words;
	uint32_t nbits;
};

/* Returns the bytes of memory that `nbits` bits take: whole words. */
static inline size_t mmc_bitmap_bytes(uint32_t nbits)
{
	return ((size_t)nbits + 63) / 64 * sizeof(uint64_t);
}

/* Initializes a bitmap of `nbits` clear bits in `words`, mmc_bitmap_bytes() long. */
void mmc_bitmap_init(struct mmc_bitmap *map, uint64_t *words, uint32_t nbits);

/* Clears every bit. */
void mmc_bitmap_clear_all(struct mmc_bitmap *map);

/* Clears `bit`, which is below nbits. */
static inline void mmc_bitmap_clear(struct mmc_bitmap *map, uint32_t bit)
{
	map->words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

/* Returns whether `bit`, which is below nbits, is set. */
static inline bool mmc_bitmap_test(const struct mmc_bitmap *map, uint32_t bit)
{
	return (map->words[bit / 64] >> (bit % 64)) & 1;
}

/* Sets `bit`, which is below nbits, and returns whether it was set before. */
static inline bool mmc_bitmap_test_and_set(struct mmc_bitmap *map, uint32_t bit)
{
	uint64_t *word = &map->words[bit / 64];
	uint64_t before = *word;

	*word = before | (UINT64_C(1) << (bit % 64));
	return (before >> (bit % 64)) & 1;
}

/*
 * Sets the bits of `mask` in a word, in such a way that a peer which reads one of them as
 * set also reads all that was written before, above all the chunks' payloads.
 */
static inline void mmc_bitmap_publish_word(struct mmc_bitmap *map,
					   uint32_t word, uint64_t mask)
{
#if defined(__aarch64__)
	/* Devices that read for peers stand outside the inner shareability domain. */
	__asm__ volatile("dmb oshst" ::: "memory");
#endif
	__atomic_store_n(&map->words[word], map->words[word] | mask,
			 __ATOMIC_RELEASE);
}

/* Sets `bit`, which is below nbits, as mmc_bitmap_publish_word() does. */
static inline void mmc_bitmap_publish(struct mmc_bitmap *map, uint32_t bit)
{
	mmc_bitmap_publish_word(map, bit / 64, UINT64_C(1) << (bit % 64));
}

/* Does for the bits of `run` what mmc_bitmap_publish() does for one. */
void mmc_bitmap_publish_run(struct mmc_bitmap *map, struct mmc_run run);

/*
 * Returns whether all bits of `run` are set. If so, any thread of this process that asks
 * sees what was written before they were published.
 */
bool mmc_bitmap_is_published(const struct mmc_bitmap *map, struct mmc_run run);

/* Sets the bits of `run`, which lies within nbits. */
void mmc_bitmap_set_run(struct mmc_bitmap *map, struct mmc_run run);

/* Returns the number of set bits in `run`, which lies within nbits. */
uint32_t mmc_bitmap_count_run(const struct mmc_bitmap *map, struct mmc_run run);

/*
 * Returns how many bits are set in either of two maps of equal size, and writes to `nruns`
 * in how many runs of adjacent bits.
 */
uint32_t mmc_bitmap_count_union(const struct mmc_bitmap *one,
				const struct mmc_bitmap *other,
				uint32_t *nruns);

/*
 * Returns the first run of bits in [from, to) that are clear in every one of the
 * `nmaps` maps, which all have the same length; its count is 0 if there is none.
 */
struct mmc_run mmc_bitmap_next_clear(const struct mmc_bitmap *const *maps,
				     unsigned nmaps, uint32_t from,
				     uint32_t to);

/* Returns the first run of set bits in [from, to); its count is 0 if there is none. */
struct mmc_run mmc_bitmap_next_set(const struct mmc_bitmap *map, uint32_t from,
				   uint32_t to);

/* Copies `from` to `to`, which has the same length. */
void mmc_bitmap_copy(struct mmc_bitmap *to, const struct mmc_bitmap *from);

#endif
