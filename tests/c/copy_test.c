/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies past the caches: the same bytes as memcpy(), and none beside them. */
#include "node/copy.h"

#include "check.h"
#include "support/prng.h"

enum { ROOM = 700, MARGIN = 130 };

static void every_length_and_alignment_is_copied(void)
{
	static uint8_t from[ROOM + MARGIN];
	static uint8_t to[ROOM + 2 * MARGIN];
	static uint8_t expected[ROOM + 2 * MARGIN];
	struct mmc_prng prng = { .state = check_seed() };

	for (uint32_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)mmc_prng_next(&prng);
	for (uint32_t nbytes = 0; nbytes <= ROOM; nbytes++) {
		uint32_t read = (uint32_t)mmc_prng_below(&prng, MARGIN);
		uint32_t write = (uint32_t)mmc_prng_below(&prng, MARGIN);

		memset(to, 0xee, sizeof(to));
		memset(expected, 0xee, sizeof(expected));
		memcpy(expected + write, from + read, nbytes);
		mmc_copy_past_caches(to + write, from + read, nbytes);
		if (!CHECK_BYTES(to, expected, sizeof(to)))
			return;
	}
}

CHECK_MAIN(CHECK_TEST(every_length_and_alignment_is_copied))
