/* SPDX-License-Identifier: BSD-3-Clause */
/* The pieces of an operation hold every byte of every block exactly once. */
#include "node/pieces.h"

#include "check.h"
#include "support/bits.h"
#include "support/prng.h"

enum { NBLOCKS_MAX = 20, NCASES = 3000 };

#define ALIGN MMC_PART_ALIGN_BYTES
#define GIB (UINT64_C(1) << 30)

static uint64_t size_of(const struct mmc_pieces *pieces, uint32_t block)
{
	return pieces->blocks_bytes != NULL ? pieces->blocks_bytes[block]
					    : pieces->block_bytes;
}

static uint64_t longest(const struct mmc_pieces *pieces)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < pieces->nblocks; i++)
		bytes = mmc_max_u64(bytes, size_of(pieces, i));
	return bytes;
}

/* Returns the room that all blocks take of a slot if a part has `part_bytes`. */
static uint64_t room_bytes(const struct mmc_pieces *pieces, uint64_t part_bytes)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < pieces->nblocks; i++) {
		uint64_t nbytes = mmc_min_u64(size_of(pieces, i), part_bytes);

		sum += (nbytes + ALIGN - 1) / ALIGN * ALIGN;
	}
	return sum;
}

/* Checks that the parts of each piece fit into a slot, and are no shorter than need be. */
static void check_room(const struct mmc_pieces *pieces, uint64_t slot_bytes)
{
	CHECK(pieces->part_bytes >= ALIGN);
	CHECK_EQ(pieces->part_bytes % ALIGN, 0);
	CHECK(room_bytes(pieces, pieces->part_bytes) <= slot_bytes);
	if (pieces->part_bytes < longest(pieces))
		CHECK(room_bytes(pieces, pieces->part_bytes + ALIGN) >
		      slot_bytes);
}

/* Checks that the parts of a block lie one behind the other, up to its end. */
static void check_block(const struct mmc_pieces *pieces, uint32_t block)
{
	uint64_t end_bytes = 0;

	for (uint32_t piece = 0; piece < pieces->npieces; piece++) {
		struct mmc_part part = mmc_pieces_part(pieces, piece, block);

		CHECK_EQ(part.offset_bytes, end_bytes);
		CHECK(part.nbytes <= pieces->part_bytes);
		end_bytes += part.nbytes;
	}
	CHECK_EQ(end_bytes, size_of(pieces, block));
}

/* Checks that every piece has a byte, unless there are none at all. */
static void check_number(const struct mmc_pieces *pieces)
{
	uint64_t nbytes = longest(pieces);
	uint64_t before = (uint64_t)(pieces->npieces - 1) * pieces->part_bytes;

	CHECK(pieces->npieces >= 1);
	CHECK(nbytes <= before + pieces->part_bytes);
	CHECK(nbytes > before || (nbytes == 0 && pieces->npieces == 1));
}

static void check_all(struct mmc_pieces *pieces, uint64_t slot_bytes)
{
	CHECK(mmc_pieces_cut(pieces, slot_bytes));
	check_room(pieces, slot_bytes);
	check_number(pieces);
	for (uint32_t i = 0; i < pieces->nblocks; i++)
		check_block(pieces, i);
}

/* Returns a size that is often at a bound where something changes. */
static uint64_t draw_bytes(struct mmc_prng *prng)
{
	static const uint64_t bounds[] = { 0, 1, 63, 64, 65, 128, 1000, 70000 };
	uint64_t bound = bounds[mmc_prng_below(prng, 8)];

	return mmc_prng_below(prng, 2) ? bound : mmc_prng_below(prng, bound);
}

static uint64_t draw_slot(struct mmc_prng *prng, uint32_t nblocks)
{
	uint64_t more = mmc_prng_below(prng, 2) ? 2 * nblocks : 300;

	return ALIGN * (nblocks + mmc_prng_below(prng, more));
}

static void equal_blocks(void)
{
	struct mmc_prng prng = { check_seed() };

	for (int i = 0; i < NCASES; i++) {
		uint32_t n = 1 + (uint32_t)mmc_prng_below(&prng, NBLOCKS_MAX);
		struct mmc_pieces pieces = {
			.block_bytes = draw_bytes(&prng),
			.nblocks = n,
		};

		check_all(&pieces, draw_slot(&prng, n));
	}
}

static void unequal_blocks(void)
{
	struct mmc_prng prng = { check_seed() };
	uint64_t sizes[NBLOCKS_MAX];

	for (int i = 0; i < NCASES; i++) {
		uint32_t n = 1 + (uint32_t)mmc_prng_below(&prng, NBLOCKS_MAX);
		struct mmc_pieces pieces = {
			.blocks_bytes = sizes,
			.nblocks = n,
		};

		for (uint32_t k = 0; k < n; k++)
			sizes[k] = draw_bytes(&prng);
		check_all(&pieces, draw_slot(&prng, n));
	}
}

/* Marks each byte of each part, as a member that copies it would: none twice. */
static void each_byte_is_in_one_part(void)
{
	static uint8_t marks[NBLOCKS_MAX][3000];
	uint64_t sizes[NBLOCKS_MAX];
	struct mmc_prng prng = { check_seed() };
	struct mmc_pieces pieces = {
		.blocks_bytes = sizes,
		.nblocks = NBLOCKS_MAX,
	};

	for (uint32_t i = 0; i < NBLOCKS_MAX; i++)
		sizes[i] = mmc_prng_below(&prng, sizeof(marks[i]) + 1);
	CHECK(mmc_pieces_cut(&pieces, 2 * NBLOCKS_MAX * ALIGN));
	for (uint32_t k = 0; k < pieces.npieces; k++)
		for (uint32_t i = 0; i < NBLOCKS_MAX; i++) {
			struct mmc_part part = mmc_pieces_part(&pieces, k, i);

			for (uint64_t b = 0; b < part.nbytes; b++)
				marks[i][part.offset_bytes + b]++;
		}
	for (uint32_t i = 0; i < NBLOCKS_MAX; i++)
		for (uint64_t b = 0; b < sizeof(marks[i]); b++)
			CHECK_EQ(marks[i][b], b < sizes[i]);
}

/* One huge block among small ones has almost the whole slot to itself. */
static void one_huge_block(void)
{
	uint64_t sizes[4] = { 0, 5 * GIB + 12345, 1, 64 };
	struct mmc_pieces pieces = { .blocks_bytes = sizes, .nblocks = 4 };
	struct mmc_part last;

	check_all(&pieces, 1 << 20);
	CHECK_EQ(pieces.part_bytes, (1 << 20) - 2 * ALIGN);
	last = mmc_pieces_part(&pieces, pieces.npieces - 1, 1);
	CHECK(last.offset_bytes > 4 * GIB);
	CHECK_EQ(last.offset_bytes + last.nbytes, sizes[1]);
}

static void an_operation_without_bytes_is_one_piece(void)
{
	uint64_t sizes[3] = { 0, 0, 0 };
	struct mmc_pieces equal = { .nblocks = 3 };
	struct mmc_pieces unequal = { .blocks_bytes = sizes, .nblocks = 3 };

	check_all(&equal, 3 * ALIGN);
	CHECK_EQ(equal.npieces, 1);
	check_all(&unequal, 3 * ALIGN);
	CHECK_EQ(unequal.npieces, 1);
}

/* Cursors can tell so many pieces apart, and an operation of more is refused. */
static void no_operation_has_too_many_pieces(void)
{
	uint64_t most = ALIGN * (uint64_t)MMC_NODE_PIECES_MAX;
	uint64_t sizes[2] = { 0, most };
	struct mmc_pieces equal = { .block_bytes = most, .nblocks = 2 };
	struct mmc_pieces unequal = { .blocks_bytes = sizes, .nblocks = 2 };
	struct mmc_part last;

	CHECK(mmc_pieces_cut(&equal, 2 * ALIGN));
	CHECK_EQ(equal.npieces, MMC_NODE_PIECES_MAX);
	last = mmc_pieces_part(&equal, MMC_NODE_PIECES_MAX - 1, 1);
	CHECK_EQ(last.offset_bytes, most - ALIGN);
	CHECK_EQ(last.nbytes, ALIGN);
	equal.block_bytes++;
	CHECK(!mmc_pieces_cut(&equal, 2 * ALIGN));
	equal.block_bytes = UINT64_MAX;
	CHECK(!mmc_pieces_cut(&equal, 2 * ALIGN));
	sizes[1] = 2 * most;
	CHECK(mmc_pieces_cut(&unequal, 2 * ALIGN));
	CHECK_EQ(unequal.npieces, MMC_NODE_PIECES_MAX);
	sizes[1]++;
	CHECK(!mmc_pieces_cut(&unequal, 2 * ALIGN));
	sizes[1] = UINT64_MAX;
	CHECK(!mmc_pieces_cut(&unequal, 2 * ALIGN));
}

static void a_part_takes_whole_lines(void)
{
	for (uint64_t nbytes = 0; nbytes < 1000; nbytes++) {
		uint64_t room = mmc_part_room_bytes(nbytes);

		CHECK_EQ(room % ALIGN, 0);
		CHECK(room >= nbytes && room < nbytes + ALIGN);
	}
}

/* ---- several rails ------------------------------------------------------- */

/* Returns how many bytes of an operation one rail carries, of which it is number `rail`. */
static uint64_t share_of(const struct mmc_pieces *pieces, uint32_t rail)
{
	uint64_t nbytes = 0;

	for (uint32_t k = rail; k < pieces->npieces; k += pieces->nrails)
		for (uint32_t i = 0; i < pieces->nblocks; i++)
			nbytes += mmc_pieces_part(pieces, k, i).nbytes;
	return nbytes;
}

/* Checks that no rail carries much less, in per cent, than its share. */
static void check_shares(const struct mmc_pieces *pieces, uint64_t percent)
{
	for (uint32_t rail = 0; rail < pieces->nrails; rail++)
		CHECK(share_of(pieces, rail) * pieces->nrails * 100 >=
		      pieces->total_bytes * percent);
}

static void rails_share_equal_blocks(void)
{
	struct mmc_prng prng = { check_seed() };

	for (int i = 0; i < NCASES; i++) {
		uint32_t n = 1 + (uint32_t)mmc_prng_below(&prng, NBLOCKS_MAX);
		uint32_t nrails = 2 + (uint32_t)mmc_prng_below(&prng, 7);
		struct mmc_pieces pieces = {
			.block_bytes = 500000 + mmc_prng_below(&prng, 1 << 20),
			.nblocks = n,
			.nrails = nrails,
		};
		uint64_t slot_bytes =
			64 * 1000 * (1 + mmc_prng_below(&prng, 9));

		CHECK(mmc_pieces_cut(&pieces, slot_bytes));
		CHECK(room_bytes(&pieces, pieces.part_bytes) <= slot_bytes);
		check_number(&pieces);
		check_block(&pieces, 0);
		check_shares(&pieces, 90);
	}
}

/* Later pieces lack the short blocks, so each rail has earlier and later ones. */
static void rails_share_unequal_blocks(void)
{
	uint64_t sizes[8];
	struct mmc_pieces pieces = {
		.blocks_bytes = sizes,
		.nblocks = 8,
		.nrails = 2,
	};

	for (uint32_t i = 0; i < 8; i++)
		sizes[i] = i * 100000;
	CHECK(mmc_pieces_cut(&pieces, 16 << 20));
	CHECK_EQ(pieces.npieces, 8);
	for (uint32_t i = 0; i < 8; i++)
		check_block(&pieces, i);
	check_shares(&pieces, 85);
}

/* A short operation has few pieces, if it has several at all. */
static void rails_share_nothing_short(void)
{
	struct mmc_pieces pieces = { .nblocks = 4, .nrails = 4 };
	const uint64_t least_bytes = MMC_RAIL_PIECE_BYTES_MIN / 4;

	for (uint32_t n = 1; n <= 6; n++) {
		pieces.block_bytes = n * least_bytes + 1;
		CHECK(mmc_pieces_cut(&pieces, 16 << 20));
		CHECK_EQ(pieces.npieces, n < 4 ? n : 4);
		pieces.block_bytes = n * least_bytes - 1;
		CHECK(mmc_pieces_cut(&pieces, 16 << 20));
		CHECK_EQ(pieces.npieces, n < 2 ? 1 : n < 5 ? n - 1 : 4);
	}
}

CHECK_MAIN(CHECK_TEST(equal_blocks), CHECK_TEST(unequal_blocks),
	   CHECK_TEST(each_byte_is_in_one_part), CHECK_TEST(one_huge_block),
	   CHECK_TEST(an_operation_without_bytes_is_one_piece),
	   CHECK_TEST(no_operation_has_too_many_pieces),
	   CHECK_TEST(a_part_takes_whole_lines),
	   CHECK_TEST(rails_share_equal_blocks),
	   CHECK_TEST(rails_share_unequal_blocks),
	   CHECK_TEST(rails_share_nothing_short))
