/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the firmware's own malloc(), memory functions and snprintf(). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firmware/arena.h"
#include "firmware/machine.h"
#include "support/assert.h"

#define NBYTES 200

static uint8_t bytes[NBYTES];
static uint8_t other[NBYTES];

static void number(uint8_t *at)
{
	for (int i = 0; i < NBYTES; i++)
		at[i] = (uint8_t)(i + 1);
}

/* Whatever the two places and the length, memmove() moves that and nothing else. */
static void bytes_move(void)
{
	for (int from = 0; from < 20; from++)
		for (int to = 0; to < 20; to++)
			for (int n = 0; n < NBYTES - 20; n += 1 + n / 8) {
				number(bytes);
				memmove(bytes + to, bytes + from, (size_t)n);
				for (int i = 0; i < NBYTES; i++)
					MMC_ASSERT(bytes[i] ==
						   (i >= to && i < to + n
							    ? i - to + from
							    : i) +
							   1);
			}
}

static void bytes_are_set_and_compared(void)
{
	for (int at = 0; at < 9; at++)
		for (int n = 0; n < 40; n++) {
			number(bytes);
			number(other);
			memset(bytes + at, 0xee, (size_t)n);
			for (int i = 0; i < NBYTES; i++)
				MMC_ASSERT(
					bytes[i] ==
					(i >= at && i < at + n ? 0xee : i + 1));
			MMC_ASSERT((memcmp(bytes, other, NBYTES) == 0) ==
				   (n == 0));
		}
	MMC_ASSERT(memcmp("a\x80", "a\x7f", 2) > 0);
	MMC_ASSERT(memcmp("ab", "ac", 1) == 0);
	MMC_ASSERT(memchr("abc", 'c', 2) == NULL);
	MMC_ASSERT(*(const char *)memchr("abc", 'c', 3) == 'c');
	MMC_ASSERT(strcmp("ab", "abc") < 0 && strcmp("b", "ab") > 0);
	MMC_ASSERT(strcmp("", "") == 0 && strlen("four") == 4);
}

static void text_is_formatted_and_cut(void)
{
	char text[16];

	snprintf(text, sizeof(text), "%u %02u %s", 0U, 7U, "ab");
	MMC_ASSERT(strcmp(text, "0 07 ab") == 0);
	snprintf(text, sizeof(text), "%d %c", -12, 'x');
	MMC_ASSERT(strcmp(text, "-12 x") == 0);
	MMC_ASSERT(snprintf(text, sizeof(text), "%lu", UINT64_MAX) == 15);
	MMC_ASSERT(strcmp(text, "184467440737095") == 0);
}

/* What has been freed is used again, so that a steady program takes no more memory. */
static void memory_is_used_again(void)
{
	size_t used_bytes;
	uint8_t *grown = realloc(NULL, 10);
	uint8_t *pages = aligned_alloc(4096, 5000);

	memset(grown, 7, 10);
	grown = realloc(grown, 1000);
	MMC_ASSERT(grown != NULL && grown[0] == 7 && grown[9] == 7);
	MMC_ASSERT(pages != NULL && (uintptr_t)pages % 4096 == 0);
	free(grown);
	memset(pages, 8, 5000);
	pages = realloc(pages, 20000);
	MMC_ASSERT(pages[0] == 8 && pages[4999] == 8);
	free(pages);
	used_bytes = mmc_arena_used_bytes();
	for (int i = 0; i < 1000; i++) {
		void *one = malloc(900);
		uint8_t *two = calloc(9, 100);
		void *three = aligned_alloc(4096, 4800);

		MMC_ASSERT(one != NULL && three != NULL);
		MMC_ASSERT((uintptr_t)one % MMC_ARENA_ALIGN_BYTES == 0);
		MMC_ASSERT(two != NULL && two[0] == 0 && two[899] == 0);
		memset(one, 1, 900);
		memset(two, 2, 900);
		memset(three, 3, 4800);
		MMC_ASSERT(two[0] == 2 && two[899] == 2);
		free(one);
		free(three);
		free(two);
	}
	MMC_ASSERT(mmc_arena_used_bytes() <= used_bytes + 2048);
}

static void too_much_is_refused(void)
{
	MMC_ASSERT(malloc((size_t)1 << 30) == NULL);
	MMC_ASSERT(malloc(SIZE_MAX) == NULL);
	MMC_ASSERT(calloc(SIZE_MAX / 2, 3) == NULL);
	MMC_ASSERT(realloc(NULL, SIZE_MAX) == NULL);
	MMC_ASSERT(realloc(malloc(10), SIZE_MAX) == NULL);
	MMC_ASSERT(aligned_alloc(4096, SIZE_MAX - 10) == NULL);
}

int main(void)
{
	bytes_move();
	bytes_are_set_and_compared();
	text_is_formatted_and_cut();
	memory_is_used_again();
	too_much_is_refused();
	mmc_machine_print("passed\n");
	return 0;
}
