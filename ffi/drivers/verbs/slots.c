/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/verbs/slots.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire/header.h"
#include "support/assert.h"

/* A cache line: no two slots share one. */
#define LINE_BYTES 64

/* The device reports this many datagrams that have left in each round of the ring. */
#define SIGNALS 4

int mmc_verbs_slots_init(struct mmc_verbs_slots *slots,
			 const struct mmc_verbs_port *port, uint32_t nslots,
			 uint32_t slot_bytes)
{
	slots->nslots = nslots;
	slots->slot_bytes =
		(slot_bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	slots->requests = calloc(nslots, sizeof(*slots->requests));
	slots->sges = calloc(nslots, sizeof(*slots->sges));
	if (slots->requests == NULL || slots->sges == NULL)
		return -MMC_ENOMEM;
	return mmc_verbs_memory_init(&slots->memory, port,
				     (size_t)nslots * slots->slot_bytes);
}

void mmc_verbs_slots_destroy(struct mmc_verbs_slots *slots)
{
	mmc_verbs_memory_destroy(&slots->memory);
	free(slots->sges);
	free(slots->requests);
}

/*
 * Returns the immediate of a datagram: the index in its header, in network order, or 0
 * if it has no whole header. The receiver does not need it; it is there for monitors of
 * the traffic.
 */
static uint32_t immediate_of(const struct mmc_parcel *parcel)
{
	if (parcel->head_bytes < MMC_HEADER_BYTES)
		return 0;
	return htonl(mmc_header_peek(parcel->head).index);
}

struct ibv_send_wr *mmc_verbs_slots_fill(struct mmc_verbs_slots *slots,
					 const struct mmc_parcel *parcel)
{
	uint32_t number = slots->nfilled++;
	uint32_t slot = number & (slots->nslots - 1);
	uint8_t *to = slots->memory.bytes + (size_t)slot * slots->slot_bytes;
	uint32_t interval = slots->nslots / SIGNALS;

	MMC_ASSERT(parcel->head_bytes + parcel->body_bytes <=
		   slots->slot_bytes);
	memcpy(to, parcel->head, parcel->head_bytes);
	if (parcel->body_bytes > 0)
		memcpy(to + parcel->head_bytes, parcel->body,
		       parcel->body_bytes);
	slots->sges[slot] = (struct ibv_sge){
		.addr = (uintptr_t)to,
		.length = parcel->head_bytes + parcel->body_bytes,
		.lkey = slots->memory.region->lkey,
	};
	slots->requests[slot] = (struct ibv_send_wr){
		.wr_id = number,
		.sg_list = &slots->sges[slot],
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = immediate_of(parcel),
		.send_flags = number % interval == interval - 1
				      ? IBV_SEND_SIGNALED
				      : 0,
	};
	return &slots->requests[slot];
}
