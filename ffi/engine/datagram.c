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

/* Returns the event behind the run of full datagrams that begins with `event`. */
static const struct mmc_event *skip_full(const struct mmc_team *team,
					 const struct mmc_event *event,
					 const struct mmc_event *end,
					 uint64_t index)
{
	const struct mmc_header_template template = team->expected.template;
	bool has_crc = team->options.checksum == MMC_CHECKSUM_FULL;
	uint32_t full_bytes = team->expected.full_bytes;
	uint32_t source = event->source;

	while (++event < end && event->nbytes == full_bytes &&
	       event->source == source && event->kind == MMC_EVENT_DATAGRAM &&
	       mmc_header_matches(&template, event->bytes, ++index) &&
	       !(has_crc && !crc_is_right(event)))
		;
	return event;
}

unsigned mmc_team_find_run(const struct mmc_team *team,
			   const struct mmc_event *events, unsigned nevents,
			   const struct mmc_header *first)
{
	const struct mmc_event *end = events + nevents;
	const struct mmc_event *event = events;
	struct mmc_header next = *first;

	if (events->nbytes != team->expected.full_bytes)
		return 1;
	event = skip_full(team, events, end, first->index);
	next.index += (uint32_t)(event - events);
	if (event < end && event->kind == MMC_EVENT_DATAGRAM &&
	    event->source == events->source &&
	    event->nbytes < team->expected.full_bytes &&
	    ends_run(team, event, &next))
		event++;
	return (unsigned)(event - events);
}
