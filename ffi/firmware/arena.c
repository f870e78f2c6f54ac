/* SPDX-License-Identifier: BSD-3-Clause */
#include "firmware/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The range, which link.ld defines. */
extern uint8_t mmc_arena_begin[];
extern uint8_t mmc_arena_end[];

#define CLASSES 64

/*
 * The header of a piece. The memory that malloc() returns follows it, and is aligned like
 * the header, since the header's length is the alignment.
 */
struct piece {
	struct piece *next; /* in the list of free pieces of this class */
	size_t class;	    /* the piece has 2^class bytes, header included */
	/*
	 * The header itself. aligned_alloc() writes another header before the memory that
	 * it returns, in which only this field is set, to the piece's own header.
	 */
	struct piece *whole;
	uint8_t padding[MMC_ARENA_ALIGN_BYTES - 3 * sizeof(size_t)];
};

_Static_assert(sizeof(struct piece) == MMC_ARENA_ALIGN_BYTES,
	       "the memory behind a header is aligned like the header");

static struct piece *unused[CLASSES];
static size_t used_bytes;

static size_t arena_bytes(void)
{
	return (size_t)(mmc_arena_end - mmc_arena_begin);
}

/* Returns the class of a piece with room for `nbytes`, which fit in the arena. */
static size_t class_of(size_t nbytes)
{
	return 64 - (size_t)__builtin_clzl(nbytes + sizeof(struct piece) - 1);
}

/* Cuts a new piece off the range. Returns NULL if too little is left. */
static struct piece *cut(size_t class)
{
	size_t left_bytes = arena_bytes() - used_bytes;
	struct piece *piece = (struct piece *)(mmc_arena_begin + used_bytes);

	if ((size_t)1 << class > left_bytes)
		return NULL;
	used_bytes += (size_t)1 << class;
	piece->class = class;
	piece->whole = piece;
	return piece;
}

void *malloc(size_t nbytes)
{
	struct piece *piece;
	size_t class;

	if (nbytes > arena_bytes())
		return NULL;
	class = class_of(nbytes);
	piece = unused[class];
	if (piece == NULL)
		piece = cut(class);
	else
		unused[class] = piece->next;
	return piece == NULL ? NULL : piece + 1;
}

void *calloc(size_t n, size_t nbytes)
{
	size_t all_bytes;
	void *memory;

	if (__builtin_mul_overflow(n, nbytes, &all_bytes))
		return NULL;
	memory = malloc(all_bytes);
	return memory == NULL ? NULL : memset(memory, 0, all_bytes);
}

void *aligned_alloc(size_t alignment, size_t nbytes)
{
	uintptr_t at = nbytes > SIZE_MAX - alignment
			       ? 0
			       : (uintptr_t)malloc(nbytes + alignment);
	uintptr_t aligned = (at + alignment - 1) & ~(alignment - 1);

	if (at == 0 || aligned == at)
		return (void *)at;
	((struct piece *)aligned)[-1].whole = (struct piece *)at - 1;
	return (void *)aligned;
}

void free(void *memory)
{
	struct piece *piece;

	if (memory == NULL)
		return;
	piece = ((struct piece *)memory)[-1].whole;
	piece->next = unused[piece->class];
	unused[piece->class] = piece;
}

/* Returns how many bytes the piece has from `memory` on, which lies in it. */
static size_t room_bytes(const uint8_t *memory)
{
	const struct piece *piece = ((const struct piece *)memory)[-1].whole;

	return ((size_t)1 << piece->class) -
	       (size_t)(memory - (const uint8_t *)piece);
}

void *realloc(void *memory, size_t nbytes)
{
	void *grown;

	if (memory == NULL)
		return malloc(nbytes);
	if (nbytes <= room_bytes(memory))
		return memory;
	grown = malloc(nbytes);
	if (grown == NULL)
		return NULL;
	memcpy(grown, memory, room_bytes(memory));
	free(memory);
	return grown;
}

size_t mmc_arena_used_bytes(void)
{
	return used_bytes;
}
