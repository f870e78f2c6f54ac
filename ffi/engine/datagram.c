/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/datagram.h"

#include "engine/crc32c.h"

static bool crc_is_right(const struct mmc_event *event)
{
	const uint32_t head_bytes = MMC_HEADER_BYTES + MMC_CRC_BYTES;
	uint32_t crc = mmc_crc32c(0, event->bytes, MMC_HEADER_BYTES);

	crc = mmc_crc32c(crc, mmc_event_body(event, head_bytes),
			 event->nbytes - head_bytes);
	return crc == mmc_get_u32(event->bytes + MMC_HEADER_BYTES);
}

/*
 * Reads the header of a datagram that carries a full chunk of the operation that was
 * heard last, as most do. Returns false if it does not.
 */
static bool recognize(const struct mmc_team *team,
		      const struct mmc_event *event, struct mmc_header *header)
{
	const struct mmc_expected *expected = &team->expected;
	uint32_t index;

	if (expected->full_bytes == 0 || event->nbytes != expected->full_bytes)
		return false;
	index = mmc_get_u32(event->bytes + 12);
	*header = (struct mmc_header){ .channel = expected->channel,
				       .epoch = expected->epoch,
				       .index = index };
	return index <= MMC_INDEX_MASK &&
	       mmc_header_matches(&expected->template, event->bytes, index);
}

int mmc_team_decode(const struct mmc_team *team, const struct mmc_event *event,
		    struct mmc_header *header)
{
	enum mmc_checksum checksum = team->options.checksum;
	int rv = 0;

	if (!recognize(team, event, header))
		rv = mmc_header_decode(header, event->bytes, event->nbytes,
				       checksum);
	if (rv == 0 && checksum == MMC_CHECKSUM_FULL && !crc_is_right(event))
		rv = -MMC_ECORRUPT;
	return rv;
}

void mmc_team_expect(struct mmc_team *team, const struct mmc_header *header)
{
	struct mmc_expected *expected = &team->expected;

	if (header->channel == expected->channel &&
	    header->epoch == expected->epoch)
		return;
	expected->channel = header->channel;
	expected->epoch = header->epoch;
	expected->full_bytes =
		mmc_team_head_bytes(team) + team->options.chunk_bytes;
	expected->template = mmc_header_template(header, expected->full_bytes,
						 team->options.checksum);
}

/*
 * The headers that continue a run, as two words each, of which only the index and the
 * checksum differ.
 */
struct pattern {
	struct mmc_header_template template;
	uint64_t channel; /* the first word without the checksum */
	uint64_t epoch;	  /* the second word without the index */
};

static inline bool fits(const struct pattern *pattern, const uint8_t *bytes,
			uint32_t index)
{
	uint16_t folded = mmc_header_patch(&pattern->template, index);

	return mmc_get_u64(bytes) == (pattern->channel | folded) &&
	       mmc_get_u64(bytes + 8) == (pattern->epoch | index);
}

/*
 * Returns whether a datagram that is not full has the header `next`, of the operation that
 * is expected.
 */
static bool ends_run(const struct mmc_team *team, const struct mmc_event *event,
		     const struct mmc_header *next)
{
	struct mmc_header header;

	return mmc_team_decode(team, event, &header) == 0 &&
	       header.channel == next->channel && header.epoch == next->epoch &&
	       header.index == next->index;
}

/* Returns the event behind the run that begins with `event`, before `end`. */
static const struct mmc_event *
skip_run(const struct mmc_team *team, const struct mmc_event *event,
	 const struct mmc_event *end, struct mmc_header next, uint64_t *nbytes)
{
	const struct mmc_expected *expected = &team->expected;
	const struct pattern pattern = {
		.template = expected->template,
		.channel = mmc_get_u64(expected->template.bytes) &
			   MMC_CHANNEL_MASK,
		.epoch = mmc_get_u64(expected->template.bytes + 8),
	};
	bool has_crc = team->options.checksum == MMC_CHECKSUM_FULL;
	uint32_t full_bytes = expected->full_bytes;
	uint32_t source = event->source;
	uint64_t total_bytes = event->nbytes;

	while (++event < end && event[-1].nbytes == full_bytes &&
	       event->kind == MMC_EVENT_DATAGRAM && event->source == source) {
		next.index++;
		if (event->nbytes == full_bytes) {
			if (!fits(&pattern, event->bytes, next.index) ||
			    (has_crc && !crc_is_right(event)))
				break;
		} else if (!ends_run(team, event, &next)) {
			break;
		}
		total_bytes += event->nbytes;
	}
	*nbytes = total_bytes;
	return event;
}

unsigned mmc_team_find_run(const struct mmc_team *team,
			   const struct mmc_event *events, unsigned nevents,
			   const struct mmc_header *first, uint64_t *nbytes)
{
	const struct mmc_event *end = events + nevents;

	if (nevents == 1) {
		*nbytes = events->nbytes;
		return 1;
	}
	return (unsigned)(skip_run(team, events, end, *first, nbytes) - events);
}
