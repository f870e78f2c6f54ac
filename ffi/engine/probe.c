/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/probe.h"

#include "engine/crc32c.h"

/*
 * The time that MMC_PROBE_RANKS ranks have for their probes; they need less at 1
 * Gbit/s.
 */
#define GROUP_NS (2 * MMC_MS_NS)

bool mmc_team_on_probe(struct mmc_team *team, uint32_t source,
		       const struct mmc_header *header, uint32_t nbytes)
{
	/* A probe has its subgroup in the place of the epoch. */
	uint32_t subgroup = header->epoch;

	if (subgroup >= team->options.subgroups ||
	    subgroup >= MMC_HEARD_SUBGROUPS_MAX)
		return false;
	team->heard[source] |= UINT64_C(1) << subgroup;
	if (nbytes >= team->options.chunk_bytes)
		team->heard_full[source] |= UINT64_C(1) << subgroup;
	return true;
}

uint32_t mmc_team_write_head(const struct mmc_team *team, uint8_t *head,
			     uint32_t epoch, uint32_t kind, const uint8_t *body,
			     uint32_t nbytes)
{
	enum mmc_checksum checksum = team->options.checksum;
	const struct mmc_header header = {
		.channel = team->options.channel,
		.epoch = epoch,
		.index = MMC_INDEX_CONTROL | kind,
	};
	uint32_t head_bytes = MMC_HEADER_BYTES;
	uint32_t crc;

	if (checksum == MMC_CHECKSUM_FULL)
		head_bytes += MMC_CRC_BYTES;
	mmc_header_encode(head, &header, head_bytes + nbytes, checksum);
	if (checksum != MMC_CHECKSUM_FULL)
		return head_bytes;
	crc = mmc_crc32c(0, head, MMC_HEADER_BYTES);
	mmc_put_u32(head + MMC_HEADER_BYTES, mmc_crc32c(crc, body, nbytes));
	return head_bytes;
}

uint64_t mmc_probe_offset_ns(uint32_t rank, uint32_t nranks, uint32_t copy)
{
	uint64_t ngroups = ((uint64_t)nranks - 1) / MMC_PROBE_RANKS + 1;

	if (ngroups == 1)
		return 0;
	return (copy * ngroups + rank / MMC_PROBE_RANKS) * GROUP_NS;
}
