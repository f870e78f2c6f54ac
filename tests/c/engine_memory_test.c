/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the engine: each team registers it once, at its first use. */
#include "engine/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "hub.h"

#define NBYTES 10000

static const struct hub_options readable = {
	.nranks = 2,
	.nplayed = 1,
	.read_bytes_max = 4096,
};

static struct mmc_counters counters;

static bool find(const void *address, uint64_t nbytes, struct mmc_region *found)
{
	return mmc_team_find_region(hub[0].team, address, nbytes, &counters,
				    found);
}

/* The memory is registered once, as a whole; nothing beyond it is found. */
static void registered_once(void)
{
	struct mmc_region region;
	uint8_t *memory;
	size_t whole;

	hub_open(&readable);
	CHECK_EQ(mmc_memory_allocate(hub[0].engine, NBYTES, (void **)&memory),
		 0);
	CHECK_EQ((uintptr_t)memory % 4096, 0);
	memset(memory, 1, NBYTES);
	CHECK_EQ(hub[0].nregions, 0);
	CHECK(find(memory + 50, 100, &region));
	CHECK(find(memory, NBYTES, &region));
	CHECK_EQ(hub[0].nregions, 1);
	whole = hub[0].regions[0].nbytes;
	CHECK(whole >= NBYTES);
	CHECK(!find(memory + 1, whole, &region));
	CHECK(!find(memory - 1, 1, &region));
	CHECK(!find(&region, 1, &region));
	CHECK_EQ(hub[0].nregions, 1);
	mmc_memory_free(hub[0].engine, memory);
	CHECK(!hub[0].regions[0].live);
	CHECK(!find(memory, NBYTES, &region));
	hub_close();
}

/* A failed registration is tried again at the next use. */
static void a_failure_is_not_kept(void)
{
	struct mmc_region region;
	void *memory;

	hub_open(&readable);
	CHECK_EQ(mmc_memory_allocate(hub[0].engine, NBYTES, &memory), 0);
	hub[0].register_rv = -MMC_ENOMEM;
	CHECK(!find(memory, 1, &region));
	hub[0].register_rv = 0;
	CHECK(find(memory, 1, &region));
	CHECK_EQ(hub[0].nregions, 1);
	/* Closing the team first also ends its registrations. */
	mmc_stream_close(hub[0].stream);
	hub[0].stream = NULL;
	mmc_team_forget_memories(hub[0].team);
	CHECK(!hub[0].regions[0].live);
	mmc_memory_free(hub[0].engine, memory);
	hub_close();
}

/* Memory to which a device may still write is not freed, and so not used again. */
static void what_may_be_written_is_leaked(void)
{
	struct mmc_region region;
	uint8_t *memory;

	hub_open(&readable);
	CHECK_EQ(mmc_memory_allocate(hub[0].engine, NBYTES, (void **)&memory),
		 0);
	CHECK(find(memory, 1, &region));
	hub[0].team->memory_may_be_written = true;
	mmc_memory_free(hub[0].engine, memory);
	CHECK(!hub[0].regions[0].live);
	memset(memory, 2, NBYTES);
	hub_close();
	free(memory);
}

/* Returns the descriptor of a file in memory, of `nbytes`. */
static int file(size_t nbytes)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	MMC_ASSERT(fd >= 0 && ftruncate(fd, (off_t)nbytes) == 0);
	return fd;
}

/* Two mappings of a file are one memory; each is registered as any other. */
static void a_file_is_mapped(void)
{
	struct mmc_region region;
	uint8_t *memory[2];
	int fd = file(NBYTES);

	hub_open(&readable);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(mmc_memory_map(hub[0].engine, fd, NBYTES,
					(void **)&memory[i]),
			 0);
	close(fd);
	CHECK(memory[0] != memory[1]);
	memset(memory[0], 3, NBYTES);
	CHECK_EQ(memory[1][NBYTES - 1], 3);
	CHECK(find(memory[1] + 50, NBYTES - 50, &region));
	CHECK_EQ(hub[0].nregions, 1);
	CHECK_EQ(hub[0].regions[0].nbytes, 3 * 4096);
	mmc_memory_free(hub[0].engine, memory[1]);
	CHECK(!hub[0].regions[0].live);
	CHECK_EQ(memory[0][0], 3);
	mmc_memory_free(hub[0].engine, memory[0]);
	hub_close();
}

/* A descriptor of no file is refused, with a reason. */
static void no_file_is_refused(void)
{
	void *memory;

	hub_open(&readable);
	CHECK_EQ(mmc_memory_map(hub[0].engine, -1, NBYTES, &memory),
		 -MMC_ENOMEM);
	CHECK(strstr(mmc_last_error(), "mmap") != NULL);
	hub_close();
}

/* An impossible size gives no memory, and deleting NULL does nothing. */
static void too_much_is_refused(void)
{
	CHECK(mmc_memory_new(SIZE_MAX) == NULL);
	mmc_memory_delete(NULL);
}

CHECK_MAIN(CHECK_TEST(registered_once), CHECK_TEST(a_failure_is_not_kept),
	   CHECK_TEST(what_may_be_written_is_leaked),
	   CHECK_TEST(a_file_is_mapped), CHECK_TEST(no_file_is_refused),
	   CHECK_TEST(too_much_is_refused))
