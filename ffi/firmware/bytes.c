/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements the firmware's <string.h>. CMakeLists.txt keeps the compiler from replacing
 * these loops by calls of the very functions that they implement.
 */
#include <stdint.h>
#include <string.h>

/* Returns whether both addresses are multiples of a word's length. */
static int are_aligned(const void *a, const void *b)
{
	return (((uintptr_t)a | (uintptr_t)b) & (sizeof(uint64_t) - 1)) == 0;
}

typedef uint64_t __attribute__((may_alias)) word;

#define WORDS_AT_ONCE 8

void *memcpy(void *restrict to, const void *restrict from, size_t nbytes)
{
	uint8_t *bytes = to;
	const uint8_t *source = from;

	if (are_aligned(to, from)) {
		word *words = to;
		const word *sources = from;

		for (; nbytes >= WORDS_AT_ONCE * sizeof(word);
		     nbytes -= WORDS_AT_ONCE * sizeof(word)) {
#pragma GCC unroll 8
			for (int i = 0; i < WORDS_AT_ONCE; i++)
				words[i] = sources[i];
			words += WORDS_AT_ONCE;
			sources += WORDS_AT_ONCE;
		}
		for (; nbytes >= sizeof(word); nbytes -= sizeof(word))
			*words++ = *sources++;
		bytes = (uint8_t *)words;
		source = (const uint8_t *)sources;
	}
	while (nbytes-- > 0)
		*bytes++ = *source++;
	return to;
}

void *memmove(void *to, const void *from, size_t nbytes)
{
	uint8_t *bytes = to;
	const uint8_t *source = from;

	if ((uintptr_t)to - (uintptr_t)from >= nbytes)
		return memcpy(to, from, nbytes);
	while (nbytes-- > 0)
		bytes[nbytes] = source[nbytes];
	return to;
}

void *memset(void *to, int byte, size_t nbytes)
{
	const word filled = (uint8_t)byte * UINT64_C(0x0101010101010101);
	uint8_t *bytes = to;

	for (; nbytes > 0 && ((uintptr_t)bytes & (sizeof(word) - 1)) != 0;
	     nbytes--)
		*bytes++ = (uint8_t)byte;
	for (; nbytes >= WORDS_AT_ONCE * sizeof(word);
	     nbytes -= WORDS_AT_ONCE * sizeof(word)) {
#pragma GCC unroll 8
		for (int i = 0; i < WORDS_AT_ONCE; i++)
			((word *)bytes)[i] = filled;
		bytes += WORDS_AT_ONCE * sizeof(word);
	}
	for (; nbytes >= sizeof(word); nbytes -= sizeof(word)) {
		*(word *)bytes = filled;
		bytes += sizeof(word);
	}
	while (nbytes-- > 0)
		*bytes++ = (uint8_t)byte;
	return to;
}

int memcmp(const void *a, const void *b, size_t nbytes)
{
	const uint8_t *ours = a;
	const uint8_t *theirs = b;

	for (; nbytes > 0; nbytes--, ours++, theirs++)
		if (*ours != *theirs)
			return *ours < *theirs ? -1 : 1;
	return 0;
}

void *memchr(const void *bytes, int byte, size_t nbytes)
{
	const uint8_t *at = bytes;

	for (; nbytes > 0; nbytes--, at++)
		if (*at == (uint8_t)byte)
			return (void *)(uintptr_t)at;
	return NULL;
}

int strcmp(const char *a, const char *b)
{
	for (; *a != 0 && *a == *b; a++)
		b++;
	return (uint8_t)*a - (uint8_t)*b;
}

size_t strlen(const char *text)
{
	size_t length = 0;

	while (text[length] != 0)
		length++;
	return length;
}
