/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks of one program, joined by network adapters that are modelled in memory. Each
 * adapter has a ring of completions that its driver polls, rings of descriptors for what
 * the driver (nic_driver.h) wants sent or placed, and windows for payloads that it places by
 * itself.
 */
#ifndef MMC_TESTS_FIRMWARE_NIC_H
#define MMC_TESTS_FIRMWARE_NIC_H

#include <string.h>

#include "core/wire/header.h"
#include "engine/engine.h"
#include "engine/state.h"
#include "support/assert.h"

#define NIC_CHUNK_BYTES 4096
#define NIC_RING 4096 /* entries of a ring; a power of two */
#define NIC_WINDOWS 8 /* operations that an adapter places payloads of */

/*
 * What the wire carries of a payload that an adapter places, in network order: the low
 * bits of the epoch, which choose a window, and the chunk.
 */
#define NIC_TAG_SHIFT 24
#define NIC_TAG(epoch) ((uint32_t)(epoch) << NIC_TAG_SHIFT)

enum nic_way {
	NIC_DATAGRAMS, /* payloads lie in slots of receive memory */
	NIC_PREDICTED, /* payloads are in place, and headers tell which they are */
	NIC_WRITES,    /* the adapter tells which payloads are in place */
};

/* What the adapter tells the driver, in an entry of the ring of completions. */
struct nic_completion {
	_Alignas(64) uint8_t *head; /* of a datagram, aligned to 16 bytes */
	uint8_t *body;
	uint32_t nbytes;
	uint32_t source;
	uint64_t mark; /* NIC_MARK(); it is written last */
	uint32_t immediate;
};

/* The lap around the ring, from 1 on, and the kind of the event that a completion tells of. */
#define NIC_MARK(lap, kind) ((uint64_t)(lap) << 32 | (uint32_t)(kind))

struct nic_source {
	const uint8_t *bytes;
	uint32_t nbytes;
};

/* Has payloads put one behind the other. They are placed in the order of the descriptors. */
struct nic_gather {
	uint8_t *to;
	uint64_t cookie; /* the driver's own, like `nslots` */
	uint32_t count;
	uint32_t nslots; /* how many slots may be filled again then */
	struct nic_source sources[MMC_EVENTS_MAX];
};

/* A datagram with its header in front of a payload that is aligned to 64 bytes. */
struct nic_slot {
	uint8_t padding[64 - MMC_HEADER_BYTES];
	uint8_t head[MMC_HEADER_BYTES];
	uint8_t body[NIC_CHUNK_BYTES];
};

struct nic_window {
	uint8_t *memory; /* where its result lies */
	uint32_t tag;	 /* in network order; ~0: the window is closed */
};

struct nic {
	struct mmc_endpoint endpoint;
	uint32_t rank;
	enum nic_way way;
	uint32_t report_max; /* how many completions one poll finds at most */
	struct nic_window windows[NIC_WINDOWS];
	uint64_t cookies[NIC_WINDOWS]; /* the engine's, for the operations */
	const struct nic_completion *next; /* the next that the driver reads */
	const struct nic_completion *end;  /* of the ring */
	uint32_t lap;			   /* the lap of that one */
	uint32_t nwritten; /* completions that the adapter has written */
	uint32_t nfilled;  /* slots that it has filled */
	uint32_t ntaken;   /* of these, those that the driver has read of */
	uint32_t nplaced;  /* gathers that the adapter has carried out */
	uint32_t nposted;  /* gathers that the driver has written */
	uint32_t ntold;	  /* of these, those whose end it has told the engine */
	uint32_t nsent;	  /* datagrams that have left */
	uint32_t nqueued; /* datagrams that the driver has written */
	volatile uint32_t read_bell;  /* how many completions were read */
	volatile uint32_t slot_bell;  /* how many slots may be filled again */
	volatile uint32_t place_bell; /* the adapter's copy of `nposted` */
	struct nic_completion completions[NIC_RING];
	struct nic_gather gathers[NIC_RING];
	struct nic_slot received[NIC_RING];
	struct nic_slot sending[MMC_BATCH_DATAGRAMS_MAX];
	uint32_t sending_bytes[MMC_BATCH_DATAGRAMS_MAX]; /* of each payload */
};

static struct nic nics[2];

/* The clock of both ranks. It stands still while nothing is counted. */
static uint64_t nic_time_ns;

static inline struct nic *nic_of(struct mmc_endpoint *endpoint)
{
	return (struct nic *)endpoint;
}

/* ---- the adapter ---------------------------------------------------------- */

static inline void nic_complete(struct nic *nic, struct nic_completion entry)
{
	uint32_t at = nic->nwritten++ % NIC_RING;

	MMC_ASSERT(nic->nwritten - nic->read_bell <= NIC_RING);
	entry.mark |= NIC_MARK((nic->nwritten - 1) / NIC_RING + 1, 0);
	nic->completions[at] = entry;
}

/* Returns the window for a full chunk that was sent for the first time, or NULL. */
static inline struct nic_window *
nic_find(struct nic *nic, const struct mmc_header *header, uint32_t nbytes)
{
	struct nic_window *window = &nic->windows[header->epoch % NIC_WINDOWS];

	if (header->index > MMC_INDEX_MASK || nbytes != NIC_CHUNK_BYTES ||
	    window->tag != __builtin_bswap32(NIC_TAG(header->epoch)))
		return NULL;
	return window;
}

/* Receives a datagram of the other rank. */
static inline void nic_receive(struct nic *nic, const uint8_t *head,
			       const uint8_t *body, uint32_t nbytes)
{
	struct nic_slot *slot = &nic->received[nic->nfilled % NIC_RING];
	struct mmc_header header = mmc_header_peek(head);
	struct nic_window *window = nic_find(nic, &header, nbytes);
	struct nic_completion entry = {
		.head = slot->head,
		.body = slot->body,
		.nbytes = MMC_HEADER_BYTES + nbytes,
		.source = 1 - nic->rank,
		.mark = NIC_MARK(0, MMC_EVENT_DATAGRAM),
	};

	if (window != NULL)
		entry.body =
			window->memory + (size_t)header.index * NIC_CHUNK_BYTES;
	if (window != NULL && nic->way == NIC_WRITES) {
		entry.mark = NIC_MARK(0, MMC_EVENT_ARRIVED);
		entry.nbytes = nbytes;
		entry.immediate =
			__builtin_bswap32(NIC_TAG(header.epoch) | header.index);
	} else {
		MMC_ASSERT(nic->nfilled - nic->slot_bell < NIC_RING);
		nic->nfilled++;
		memcpy(slot->head, head, MMC_HEADER_BYTES);
	}
	memcpy(entry.body, body, nbytes);
	nic_complete(nic, entry);
}

/* Returns whether memory lies in a slot. */
static inline bool nic_is_received(const struct nic *nic, const uint8_t *memory)
{
	return (uint64_t)(memory - (const uint8_t *)nic->received) <
	       sizeof(nic->received);
}

/* Puts payloads in their places, whose slots the driver must not have posted again. */
static inline void nic_gather(struct nic *nic, const struct nic_gather *gather)
{
	uint8_t *to = gather->to;

	for (uint32_t i = 0; i < gather->count; i++) {
		const struct nic_source *source = &gather->sources[i];
		const struct nic_slot *slot =
			(const void *)(source->bytes -
				       offsetof(struct nic_slot, body));

		MMC_ASSERT(nic_is_received(nic, source->bytes));
		MMC_ASSERT(((uint32_t)(slot - nic->received) - nic->slot_bell) %
				   NIC_RING <
			   nic->nfilled - nic->slot_bell);
		memcpy(to, source->bytes, source->nbytes);
		to += source->nbytes;
	}
}

/* Carries out what the driver has asked for. */
static __attribute__((cold)) void nic_work(struct nic *nic)
{
	for (; nic->nsent != nic->nqueued; nic->nsent++) {
		uint32_t at = nic->nsent % MMC_BATCH_DATAGRAMS_MAX;

		nic_receive(&nics[1 - nic->rank], nic->sending[at].head,
			    nic->sending[at].body, nic->sending_bytes[at]);
	}
	while (nic->nplaced != nic->place_bell) {
		nic_gather(nic, &nic->gathers[nic->nplaced++ % NIC_RING]);
		nic_complete(nic, (struct nic_completion){
					  .mark = NIC_MARK(0, MMC_EVENT_PLACED),
				  });
	}
}

#endif
