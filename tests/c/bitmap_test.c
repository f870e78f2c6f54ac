/* SPDX-License-Identifier: BSD-3-Clause */
/* Bitmaps agree with a model that has one byte for each bit. */
#include "check.h"
#include "core/plan/bitmap.h"
#include "support/prng.h"

#define NBITS_MAX 4096

struct model {
	uint8_t bits[NBITS_MAX];
	struct mmc_bitmap map;
};

/* Allocates exactly as many words as needed, so that ASan sees every overrun. */
static void model_open(struct model *model, uint32_t nbits)
{
	uint64_t *words = malloc(mmc_bitmap_bytes(nbits));

	memset(model->bits, 0, sizeof(model->bits));
	memset(words, 0xff, mmc_bitmap_bytes(nbits));
	mmc_bitmap_init(&model->map, words, nbits);
}

static void model_close(struct model *model)
{
	free(model->map.words);
}

static void model_set(struct model *model, uint32_t bit)
{
	model->bits[bit] = 1;
	mmc_bitmap_publish(&model->map, bit);
}

static struct mmc_run slow_next(const uint8_t *bits, uint8_t value,
				uint32_t from, uint32_t to)
{
	struct mmc_run run;

	while (from < to && bits[from] != value)
		from++;
	run = (struct mmc_run){ .first = from, .count = 0 };
	while (from < to && bits[from++] == value)
		run.count++;
	return run;
}

static bool check_next(struct mmc_run found, struct mmc_run expected)
{
	return CHECK_EQ(found.count, expected.count) &&
	       (expected.count == 0 || CHECK_EQ(found.first, expected.first));
}

static bool check_range(const struct model *model, uint32_t from, uint32_t to)
{
	const struct mmc_bitmap *maps[] = { &model->map };
	struct mmc_run run = { .first = from, .count = to - from };
	uint32_t nset = 0;

	for (uint32_t bit = from; bit < to; bit++)
		nset += model->bits[bit];
	return CHECK_EQ(mmc_bitmap_count_run(&model->map, run), nset) &&
	       check_next(mmc_bitmap_next_clear(maps, 1, from, to),
			  slow_next(model->bits, 0, from, to)) &&
	       check_next(mmc_bitmap_next_set(&model->map, from, to),
			  slow_next(model->bits, 1, from, to));
}

/* Counts all bits, and their runs, as those of two maps that share them out. */
static bool check_union(const struct model *model)
{
	struct model one;
	struct model other;
	uint32_t nset = 0;
	uint32_t nruns = 0;
	uint32_t found;
	bool right;

	model_open(&one, model->map.nbits);
	model_open(&other, model->map.nbits);
	for (uint32_t bit = 0; bit < model->map.nbits; bit++) {
		if (!model->bits[bit])
			continue;
		nset++;
		nruns += bit == 0 || !model->bits[bit - 1];
		if (bit % 3 != 0)
			model_set(&one, bit);
		if (bit % 3 != 1)
			model_set(&other, bit);
	}
	right = CHECK_EQ(mmc_bitmap_count_union(&one.map, &other.map, &found),
			 nset);
	right &= CHECK_EQ(found, nruns);
	model_close(&one);
	model_close(&other);
	return right;
}

static bool check_bits(const struct model *model)
{
	for (uint32_t bit = 0; bit < model->map.nbits; bit++)
		if (!CHECK_EQ(mmc_bitmap_test(&model->map, bit),
			      model->bits[bit]))
			return false;
	return true;
}

/* Bitmaps of up to 9 bits agree with the model for all contents and all ranges. */
static void small_sizes(void)
{
	struct model model;

	for (uint32_t nbits = 0; nbits <= 9; nbits++)
		for (uint32_t word = 0; word < UINT32_C(1) << nbits; word++) {
			model_open(&model, nbits);
			for (uint32_t bit = 0; bit < nbits; bit++)
				if ((word >> bit) & 1)
					model_set(&model, bit);
			check_bits(&model);
			check_union(&model);
			for (uint32_t to = 0; to <= nbits; to++)
				for (uint32_t from = 0; from <= to; from++)
					check_range(&model, from, to);
			model_close(&model);
		}
}

/*
 * Bitmaps agree with the model for all contents of the 8 bits around a word's end, with
 * zeros or ones on either side.
 */
static void word_ends(void)
{
	struct model model;

	for (uint32_t word = 0; word < 1 << 10; word++) {
		model_open(&model, 130);
		for (uint32_t bit = 0; bit < 60; bit++)
			if (word & 1)
				model_set(&model, bit);
		for (uint32_t bit = 0; bit < 8; bit++)
			if ((word >> (bit + 2)) & 1)
				model_set(&model, 60 + bit);
		for (uint32_t bit = 68; bit < 130; bit++)
			if (word & 2)
				model_set(&model, bit);
		check_bits(&model);
		check_union(&model);
		for (uint32_t from = 58; from <= 70; from++)
			for (uint32_t to = from; to <= 130; to += 6)
				check_range(&model, from, to);
		check_range(&model, 0, 130);
		model_close(&model);
	}
}

/* Each run can be set, in bitmaps that end at or near the end of a word. */
static void set_runs(void)
{
	static const uint32_t sizes[] = { 1, 63, 64, 65, 127, 128, 129 };
	struct model model;

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (uint32_t to = 0; to <= sizes[s]; to++)
			for (uint32_t from = 0; from <= to; from++) {
				struct mmc_run run = { .first = from,
						       .count = to - from };

				model_open(&model, sizes[s]);
				(run.count % 2
					 ? mmc_bitmap_publish_run
					 : mmc_bitmap_set_run)(&model.map, run);
				memset(model.bits + from, 1, run.count);
				check_bits(&model);
				model_close(&model);
			}
}

static void step_randomly(struct model *model, struct mmc_prng *prng)
{
	uint32_t nbits = model->map.nbits;
	uint32_t bit = (uint32_t)mmc_prng_below(prng, nbits);
	struct mmc_run run = {
		.first = bit,
		.count = (uint32_t)mmc_prng_below(prng, nbits - bit + 1),
	};

	switch (mmc_prng_below(prng, 8)) {
	case 0:
		run.count = run.count < 100 ? run.count : 100;
		mmc_bitmap_set_run(&model->map, run);
		memset(model->bits + run.first, 1, run.count);
		break;
	case 1:
	case 2:
		mmc_bitmap_clear(&model->map, bit);
		model->bits[bit] = 0;
		break;
	case 3:
		model_set(model, bit);
		break;
	case 4:
		check_range(model, run.first, run.first + run.count);
		break;
	default:
		CHECK_EQ(mmc_bitmap_test_and_set(&model->map, bit),
			 model->bits[bit]);
		model->bits[bit] = 1;
	}
}

/* Large bitmaps agree with the model after many random changes. */
static void big_sizes(void)
{
	struct mmc_prng prng = { .state = 2 };
	struct model model;

	for (int round = 0; round < 200; round++) {
		model_open(&model,
			   1 + (uint32_t)mmc_prng_below(&prng, NBITS_MAX));
		for (int step = 0; step < 2000; step++)
			step_randomly(&model, &prng);
		check_bits(&model);
		check_range(&model, 0, model.map.nbits);
		mmc_bitmap_clear_all(&model.map);
		memset(model.bits, 0, sizeof(model.bits));
		check_range(&model, 0, model.map.nbits);
		model_close(&model);
	}
}

/* mmc_bitmap_next_clear() finds the bits that are clear in all of several bitmaps. */
static void several_maps(void)
{
	struct mmc_prng prng = { .state = 3 };
	struct model models[3];
	const struct mmc_bitmap *maps[3];

	for (int round = 0; round < 300; round++) {
		uint32_t nbits = 1 + (uint32_t)mmc_prng_below(&prng, 300);
		uint8_t united[300] = { 0 };

		for (unsigned m = 0; m < 3; m++) {
			model_open(&models[m], nbits);
			maps[m] = &models[m].map;
			for (uint32_t i = 0; i < nbits / 3; i++) {
				uint32_t bit =
					(uint32_t)mmc_prng_below(&prng, nbits);

				model_set(&models[m], bit);
				united[bit] = 1;
			}
		}
		for (uint32_t from = 0; from <= nbits; from++)
			check_next(mmc_bitmap_next_clear(maps, 3, from, nbits),
				   slow_next(united, 0, from, nbits));
		CHECK_EQ(mmc_bitmap_next_clear(maps, 0, 0, nbits).count, nbits);
		for (unsigned m = 0; m < 3; m++)
			model_close(&models[m]);
	}
}

/* A copy has the bits of its source, and none that it had before. */
static void copies(void)
{
	struct model from;
	struct model to;

	for (uint32_t nbits = 1; nbits <= 200; nbits++) {
		model_open(&from, nbits);
		model_open(&to, nbits);
		for (uint32_t bit = 0; bit < nbits; bit += 1 + bit % 5)
			model_set(&from, bit);
		model_set(&to, nbits - 1);
		mmc_bitmap_copy(&to.map, &from.map);
		memcpy(to.bits, from.bits, sizeof(to.bits));
		check_bits(&to);
		model_close(&from);
		model_close(&to);
	}
}

CHECK_MAIN(CHECK_TEST(small_sizes), CHECK_TEST(word_ends), CHECK_TEST(set_runs),
	   CHECK_TEST(big_sizes), CHECK_TEST(several_maps), CHECK_TEST(copies))
