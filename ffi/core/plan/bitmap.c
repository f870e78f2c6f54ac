/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/plan/bitmap.h"

#include "support/bits.h"
#include "support/memory.h"

void mmc_bitmap_init(struct mmc_bitmap *map, uint64_t *words, uint32_t nbits)
{
	*map = (struct mmc_bitmap){ .words = words, .nbits = nbits };
	mmc_bitmap_clear_all(map);
}

void mmc_bitmap_clear_all(struct mmc_bitmap *map)
{
	memset(map->words, 0, mmc_bitmap_bytes(map->nbits));
}

void mmc_bitmap_copy(struct mmc_bitmap *to, const struct mmc_bitmap *from)
{
	memcpy(to->words, from->words, mmc_bitmap_bytes(from->nbits));
}

/* Returns the bits of word `word` that lie in [from, to). */
static uint64_t range_mask(uint32_t word, uint64_t from, uint64_t to)
{
	uint64_t base = (uint64_t)word * 64;
	uint64_t mask = ~UINT64_C(0);

	if (from > base)
		mask &= ~UINT64_C(0) << (from - base);
	if (to < base + 64)
		mask &= ~(~UINT64_C(0) << (to - base));
	return mask;
}

void mmc_bitmap_publish_run(struct mmc_bitmap *map, struct mmc_run run)
{
	uint64_t to = (uint64_t)run.first + run.count;

	for (uint32_t w = run.first / 64; (uint64_t)w * 64 < to; w++)
		mmc_bitmap_publish_word(map, w, range_mask(w, run.first, to));
}

bool mmc_bitmap_is_published(const struct mmc_bitmap *map, struct mmc_run run)
{
	uint64_t to = (uint64_t)run.first + run.count;

	for (uint32_t w = run.first / 64; (uint64_t)w * 64 < to; w++) {
		uint64_t mask = range_mask(w, run.first, to);

		if ((__atomic_load_n(&map->words[w], __ATOMIC_ACQUIRE) &
		     mask) != mask)
			return false;
	}
	return true;
}

void mmc_bitmap_set_run(struct mmc_bitmap *map, struct mmc_run run)
{
	uint64_t to = (uint64_t)run.first + run.count;

	for (uint32_t w = run.first / 64; (uint64_t)w * 64 < to; w++)
		map->words[w] |= range_mask(w, run.first, to);
}

uint32_t mmc_bitmap_count_run(const struct mmc_bitmap *map, struct mmc_run run)
{
	uint64_t to = (uint64_t)run.first + run.count;
	uint32_t nset = 0;

	for (uint32_t w = run.first / 64; (uint64_t)w * 64 < to; w++)
		nset += mmc_set_bits(map->words[w] &
				     range_mask(w, run.first, to));
	return nset;
}

/* Returns the bits of a word that are set in any of the maps. */
static uint64_t united_word(const struct mmc_bitmap *const *maps,
			    unsigned nmaps, uint32_t word)
{
	uint64_t united = 0;

	for (unsigned m = 0; m < nmaps; m++)
		united |= maps[m]->words[word];
	return united;
}

/* Returns the first bit in [from, to) whose united value is `value`, or else `to`. */
static uint32_t next_bit(const struct mmc_bitmap *const *maps, unsigned nmaps,
			 bool value, uint32_t from, uint32_t to)
{
	for (uint32_t w = from / 64; from < to && (uint64_t)w * 64 < to; w++) {
		uint64_t united = united_word(maps, nmaps, w);
		uint64_t found = (value ? united : ~united) &
				 range_mask(w, from, to);

		if (found != 0)
			return w * 64 + mmc_lowest_bit(found);
	}
	return to;
}

uint32_t mmc_bitmap_count_union(const struct mmc_bitmap *one,
				const struct mmc_bitmap *other, uint32_t *nruns)
{
	uint64_t before = 0; /* the last word */
	uint32_t count = 0;

	*nruns = 0;
	for (uint32_t i = 0; i < (one->nbits + 63) / 64; i++) {
		uint64_t word = one->words[i] | other->words[i];

		count += mmc_set_bits(word);
		*nruns += mmc_set_bits(word & ~(word << 1 | before >> 63));
		before = word;
	}
	return count;
}

struct mmc_run mmc_bitmap_next_clear(const struct mmc_bitmap *const *maps,
				     unsigned nmaps, uint32_t from, uint32_t to)
{
	uint32_t first = next_bit(maps, nmaps, false, from, to);
	uint32_t end = next_bit(maps, nmaps, true, first, to);

	return (struct mmc_run){ .first = first, .count = end - first };
}

struct mmc_run mmc_bitmap_next_set(const struct mmc_bitmap *map, uint32_t from,
				   uint32_t to)
{
	uint32_t first = next_bit(&map, 1, true, from, to);
	uint32_t end = next_bit(&map, 1, false, first, to);

	return (struct mmc_run){ .first = first, .count = end - first };
}
