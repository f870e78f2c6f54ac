/* SPDX-License-Identifier: BSD-3-Clause */
#include "firmware/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The range, from link.ld. */
extern uint8_t mmc_arena_begin[];
extern uint8_t mmc_arena_end[];

#define CLASSES 64

/* Stands before each piece, and is as long as what pieces are aligned to. */
struct piece {
	struct piece *next; /* while it is free: another one of its class */
	size_t class;	    /* it has 2^class bytes, these included */
	/* Where it begins: before this where what follows had to be aligned. */
	struct piece *whole;
	uint8_t padding[MMC_ARENA_ALIGN_BYTES - 3 * sizeof(size_t)];
};

_Static_assert(sizeof(struct piece) == MMC_ARENA_ALIGN_BYTES,
	       "what follows a piece's head is aligned as it is");

static struct piece *unused[CLASSES];
static size_t used_bytes;

static size_t class_of(size_t nbytes)
{
	return 64 - (size_t)__builtin_clzl(nbytes + sizeof(struct piece) - 1);
}

static struct piece *cut(size_t class)
{
	size_t left_bytes = (size_t)(mmc_arena_end - mmc_arena_begin);
	struct piece *piece = (struct piece *)(mmc_arena_begin + used_bytes);

	if (class >= CLASSES - 1 ||
	    (size_t)1 << class > left_bytes - used_bytes)
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

	if (nbytes > (size_t)(mmc_arena_end - mmc_arena_begin))
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

void *realloc(void *memory, size_t nbytes)
{
	const struct piece *piece = (const struct piece *)memory - 1;
	void *grown;

	if (memory == NULL)
		return malloc(nbytes);
	if (class_of(nbytes) <= piece->class)
		return memory;
	grown = malloc(nbytes);
	if (grown == NULL)
		return NULL;
	memcpy(grown, memory, ((size_t)1 << piece->class) - sizeof(*piece));
	free(memory);
	return grown;
}

size_t mmc_arena_used_bytes(void)
{
	return used_bytes;
}
