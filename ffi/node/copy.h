/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies past the caches. Where a result is larger than the caches, an ordinary store
 * first reads what it overwrites, and drives out slots that are about to be read. On
 * processors without such stores, this is memcpy().
 */
#ifndef MMC_NODE_COPY_H
#define MMC_NODE_COPY_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Results from this size on are copied past the caches. */
#define MMC_PAST_CACHES_BYTES_MIN (UINT64_C(4) << 20)

/* What one round copies: a cache line, whose stores then leave the processor at once. */
#define MMC_CACHE_LINE_BYTES 64

/* Copies `nbytes` from `from` to `to`, which do not overlap, past the caches. */
static inline void mmc_copy_past_caches(uint8_t *to, const uint8_t *from,
					uint64_t nbytes)
{
#ifdef __SSE2__
	uint64_t head_bytes = -(uintptr_t)to & (MMC_CACHE_LINE_BYTES - 1);

	if (nbytes >= head_bytes + MMC_CACHE_LINE_BYTES) {
		memcpy(to, from, head_bytes);
		to += head_bytes;
		from += head_bytes;
		nbytes -= head_bytes;
		for (; nbytes >= MMC_CACHE_LINE_BYTES;
		     nbytes -= MMC_CACHE_LINE_BYTES) {
			for (int i = 0; i < 4; i++)
				_mm_stream_si128(
					(__m128i *)to + i,
					_mm_loadu_si128((const __m128i *)from +
							i));
			to += MMC_CACHE_LINE_BYTES;
			from += MMC_CACHE_LINE_BYTES;
		}
		/* Such stores are not ordered with those that tell of them. */
		_mm_sfence();
	}
#endif
	memcpy(to, from, nbytes);
}

#endif
