/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of a node's streams: which are mapped in advance, and by whom. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node_members.h"

enum {
	NRANKS = 3,
	NSLOTS = 2,
	SHARE_PAGES = 16,
	SLOT_PAGES = NRANKS * SHARE_PAGES,
};

static struct mmc_node *node; /* of member 1 of 3 */

/* Opens the node and a stream of it, whose slots begin with a page. */
static struct mmc_node_stream *open_stream(uint64_t slot_bytes)
{
	struct mmc_node_stream_options options = members_options(NRANKS);
	struct mmc_node_stream *stream;
	int fd = segment_fd(SEGMENT_BYTES);

	MMC_ASSERT(mmc_node_open(fd, SEGMENT_BYTES, 1, NRANKS, &node) == 0);
	options.rank = 1;
	options.slot_bytes = slot_bytes;
	options.offset_bytes =
		64 * 4096 - mmc_node_stream_bytes(NRANKS, NSLOTS, 0);
	CHECK_EQ(mmc_node_stream_create(node, &options, &stream), 0);
	return stream;
}

/* Returns how many of `npages` pages the segment has at a place. */
static int count_pages(const uint8_t *begin, uint32_t npages)
{
	unsigned char resident[SLOT_PAGES];
	int n = 0;

	CHECK_EQ(mincore((void *)(uintptr_t)begin, npages * 4096UL, resident),
		 0);
	for (uint32_t i = 0; i < npages; i++)
		n += resident[i] & 1;
	return n;
}

/* Returns whether pages are of one size, and the kernel maps them on demand. */
static bool has_small_pages(void)
{
	char word[64] = "";
	FILE *file =
		fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "r");
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool populates = madvise(page, 4096, 23) == 0;

	munmap(page, 4096);
	if (file == NULL)
		return false;
	CHECK(fgets(word, sizeof(word), file) != NULL);
	fclose(file);
	return populates && sysconf(_SC_PAGESIZE) == 4096 &&
	       strstr(word, "[never]") != NULL;
}

/* Each member's share of a slot is its own to touch first; then all is mapped. */
static void a_small_stream_lies_near_its_members(void)
{
	struct mmc_node_stream *stream;

	if (!has_small_pages())
		return;
	stream = open_stream(SLOT_PAGES * 4096);
	for (uint32_t i = 0; i < NSLOTS; i++) {
		const uint8_t *slot = mmc_node_slot(stream, i);

		CHECK_EQ((uintptr_t)slot % 4096, 0);
		CHECK_EQ(count_pages(slot, SLOT_PAGES), SHARE_PAGES);
		CHECK_EQ(count_pages(slot + SHARE_PAGES * 4096UL, SHARE_PAGES),
			 SHARE_PAGES);
	}
	mmc_node_stream_populate(stream);
	for (uint32_t i = 0; i < NSLOTS; i++)
		CHECK_EQ(count_pages(mmc_node_slot(stream, i), SLOT_PAGES),
			 SLOT_PAGES);
	mmc_node_stream_close(stream);
	mmc_node_close(node);
}

/* What large slots may never hold is not mapped in advance. */
static void a_large_stream_is_not_mapped(void)
{
	struct mmc_node_stream *stream = open_stream(3 << 20);

	mmc_node_stream_populate(stream);
	CHECK_EQ(count_pages(mmc_node_slot(stream, 0), SLOT_PAGES), 0);
	mmc_node_stream_close(stream);
	mmc_node_close(node);
}

CHECK_MAIN(CHECK_TEST(a_small_stream_lies_near_its_members),
	   CHECK_TEST(a_large_stream_is_not_mapped))
