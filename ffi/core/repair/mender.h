/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps parity chunks that have arrived until their groups can be mended: as many data
 * chunks are then missing as there are parity chunks, and all others are present. What
 * the payloads are it does not know: they lie in slots of the engine.
 *
 * As many missing chunks of a group as it keeps parity chunks of are *spared*: nobody needs to
 * be asked for them.
 *
 * Parity may arrive before this rank knows how chunks are grouped, because its sender heard
 * sooner that all ranks have entered. Such *early* parity is kept, and judged once the flow
 * begins.
 */
#ifndef MMC_CORE_REPAIR_MENDER_H
#define MMC_CORE_REPAIR_MENDER_H

#include "core/plan/bitmap.h"
#include "core/plan/grouping.h"
#include "core/plan/layout.h"

/*
 * The most parity chunks that are kept: those of the spans of a few senders. A further
 * one is dropped, as if it was lost.
 */
#define MMC_MENDER_SLOTS 128

enum mmc_slot_state {
	MMC_SLOT_FREE,
	MMC_SLOT_EARLY, /* its payload is kept, but its group is not known yet */
	MMC_SLOT_HELD,	/* its payload is kept */
	MMC_SLOT_MENDING, /* its payload is in use */
};

struct mmc_slot {
	uint32_t owner; /* whose block it is of */
	uint32_t group;
	uint8_t row;
	uint8_t state; /* enum mmc_slot_state */
	uint32_t payload_bytes;
};

/* What is not kept, in place of a slot's number. */
enum mmc_unkept {
	MMC_UNKEPT_USELESS = -1, /* its group needs it no more, or has it */
	MMC_UNKEPT_FULL = -2,	 /* there is no slot free */
	MMC_UNKEPT_FOREIGN =
		-3, /* no such group, row or length, or not its sender's */
};

/* A group that is being mended: its chunks, and the parity that takes their place. */
struct mmc_mend {
	uint32_t first;	     /* the number of its first data chunk */
	uint32_t stride;     /* from one of its data chunks to the next */
	uint32_t ndata;	     /* how many it has */
	uint32_t nlost;	     /* how many of them are mended */
	uint32_t last_bytes; /* of its last data chunk */
	uint8_t columns[MMC_GROUP_CHUNKS_MAX]; /* [nlost] in ascending order */
	uint8_t rows[MMC_GROUP_CHUNKS_MAX];    /* [nlost] of parity */
	uint8_t slots[MMC_GROUP_CHUNKS_MAX];   /* [nlost] where that lies */
};

struct mmc_mender {
	const struct mmc_layout *layout;
	const struct mmc_bitmap *claimed;
	const struct mmc_bitmap *present;
	struct mmc_grouping grouping; /* valid once the flow has begun */
	struct mmc_bitmap spared;
	uint32_t nslots;
	uint32_t nheld; /* slots that are not free */
	bool ready;	/* a group may have become ready to be mended */
	struct mmc_slot slots[MMC_MENDER_SLOTS];
};

/* Returns how many slots the mender of an operation of `nchunks` chunks has. */
static inline uint32_t mmc_mender_slots(uint32_t nchunks)
{
	return nchunks < MMC_MENDER_SLOTS ? nchunks : MMC_MENDER_SLOTS;
}

/* Returns the bytes of memory that the mender of `nchunks` chunks takes. */
size_t mmc_mender_bytes(uint32_t nchunks);

/*
 * Makes a mender in `memory`, mmc_mender_bytes() long, and returns it. All arguments must
 * outlive it; `claimed` has the chunks that were accepted, `present` those in place.
 */
struct mmc_mender *mmc_mender_init(uint8_t *memory,
				   const struct mmc_layout *layout,
				   const struct mmc_bitmap *claimed,
				   const struct mmc_bitmap *present);

/* A parity chunk by its numbers. */
struct mmc_parity {
	uint32_t owner;
	uint32_t group;
	uint32_t row;
};

/*
 * Takes a parity chunk of `payload_bytes`. Returns the slot that keeps its payload, or an
 * enum mmc_unkept.
 */
int mmc_mender_keep(struct mmc_mender *mender, struct mmc_parity parity,
		    size_t payload_bytes);

/*
 * Takes an early parity chunk, when only `data_chunks` of the grouping is known. Returns the
 * slot that keeps its payload, or an enum mmc_unkept.
 */
int mmc_mender_keep_early(struct mmc_mender *mender, uint32_t data_chunks,
			  struct mmc_parity parity, size_t payload_bytes);

/*
 * Judges the parity chunk in `slot` if it is early, once the grouping is valid: holds it if
 * its group needs it, and frees the slot otherwise. Returns whether such a group exists; if
 * so, writes the chunk's numbers to `parity`.
 */
bool mmc_mender_judge(struct mmc_mender *mender, uint32_t slot,
		      struct mmc_parity *parity);

/* Records that the chunks of `run` have become present, which may make a group ready. */
void mmc_mender_placed(struct mmc_mender *mender, struct mmc_run run);

/*
 * Returns whether a group is to be mended now, and writes which to `parity`, without a
 * row. Its parity is in use until mmc_mender_end(). To be called until it returns false.
 */
bool mmc_mender_next(struct mmc_mender *mender, struct mmc_parity *parity);

/*
 * Describes a group that mmc_mender_next() returned. Lost is what is not present, whether
 * it is claimed or not.
 */
void mmc_mender_describe(const struct mmc_mender *mender,
			 struct mmc_parity parity, struct mmc_mend *mend);

/* Frees the slots of a group that is mended. */
void mmc_mender_end(struct mmc_mender *mender, struct mmc_parity parity);

#endif
