/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/remote/calls.h"

#include <string.h>

#include "drivers/protect/secret.h"
#include "drivers/remote/remote.h"
#include "support/error.h"

static int call(struct mmc_team *team, const struct mmc_link_call *what)
{
	return mmc_link_call(mmc_remote_link(team->endpoint), what);
}

/* ---- teams --------------------------------------------------------------- */

int mmc_remote_protect(struct mmc_team *team, struct mmc_secret *secret)
{
	uint8_t *mailbox = mmc_link_mailbox(mmc_remote_link(team->endpoint));
	int rv;

	if (!mmc_secret_spend(secret, mailbox)) {
		mmc_error_set("the secret has keyed a team before");
		return -MMC_EINVAL;
	}
	rv = call(team, &(struct mmc_link_call){
				.kind = MMC_OFFLOAD_PROTECT,
				.argument_bytes = MMC_SECRET_BYTES,
			});
	/* The runner has wiped it, too, unless it has ended before. */
	explicit_bzero(mailbox, MMC_SECRET_BYTES);
	return rv;
}

int mmc_remote_probe(struct mmc_team *team, uint64_t slice_ns,
		     struct mmc_probe *probe)
{
	return call(team, &(struct mmc_link_call){
				  .kind = MMC_OFFLOAD_PROBE,
				  .arguments = &slice_ns,
				  .argument_bytes = sizeof(slice_ns),
				  .answer = probe,
				  .answer_bytes = sizeof(*probe),
				  .takes_ns = slice_ns,
			  });
}

int mmc_remote_survey_begin(struct mmc_team *team, uint32_t id,
			    uint32_t nnumbers)
{
	const uint32_t arguments[] = { id, nnumbers };

	return call(team, &(struct mmc_link_call){
				  .kind = MMC_OFFLOAD_SURVEY,
				  .arguments = arguments,
				  .argument_bytes = sizeof(arguments),
			  });
}

int mmc_remote_survey_send(struct mmc_team *team, const struct mmc_burst *burst)
{
	return call(team, &(struct mmc_link_call){
				  .kind = MMC_OFFLOAD_BURST,
				  .arguments = burst,
				  .argument_bytes = sizeof(*burst),
			  });
}

int mmc_remote_survey_listen(struct mmc_team *team, uint64_t slice_ns,
			     struct mmc_hearing *heard)
{
	return call(team, &(struct mmc_link_call){
				  .kind = MMC_OFFLOAD_LISTEN,
				  .arguments = &slice_ns,
				  .argument_bytes = sizeof(slice_ns),
				  .answer = heard,
				  .answer_bytes = team->options.nranks *
						  (uint32_t)sizeof(*heard),
				  .takes_ns = slice_ns,
			  });
}

/* Makes a call that answers with all counters, and adds them to `values`. */
static void add_counters(struct mmc_team *team, uint32_t kind, uint32_t stream,
			 uint64_t *values)
{
	uint64_t theirs[MMC_COUNTER_COUNT] = { 0 };

	call(team, &(struct mmc_link_call){
			   .kind = kind,
			   .stream = stream,
			   .answer = theirs,
			   .answer_bytes = sizeof(theirs),
		   });
	for (uint32_t i = 0; i < MMC_COUNTER_COUNT; i++)
		values[i] += theirs[i];
}

void mmc_remote_team_counters(struct mmc_team *team, uint64_t *values)
{
	add_counters(team, MMC_OFFLOAD_COUNTERS, 0, values);
}

uint32_t mmc_remote_strangers(struct mmc_team *team,
			      struct mmc_stranger *strangers)
{
	struct mmc_link *link = mmc_remote_link(team->endpoint);
	const uint32_t most_bytes = MMC_STRANGERS_MAX * sizeof(*strangers);
	int rv = call(team, &(struct mmc_link_call){
				    .kind = MMC_OFFLOAD_STRANGERS,
				    .answer = strangers,
				    .answer_bytes = most_bytes,
			    });

	if (rv != 0)
		return 0;
	return mmc_min_u32(link->bridge->mailbox.body_bytes, most_bytes) /
	       sizeof(*strangers);
}

/* ---- streams ------------------------------------------------------------- */

int mmc_remote_stream_create(struct mmc_stream *stream)
{
	return call(stream->team,
		    &(struct mmc_link_call){
			    .kind = MMC_OFFLOAD_CREATE,
			    .stream = stream->index,
			    .arguments = &stream->options,
			    .argument_bytes = sizeof(stream->options),
		    });
}

/* Makes a call that has neither arguments nor an answer. */
static void tell(struct mmc_stream *stream, uint32_t kind)
{
	call(stream->team,
	     &(struct mmc_link_call){ .kind = kind, .stream = stream->index });
}

void mmc_remote_stream_leave(struct mmc_stream *stream)
{
	tell(stream, MMC_OFFLOAD_LEAVE);
}

void mmc_remote_stream_close(struct mmc_stream *stream)
{
	tell(stream, MMC_OFFLOAD_CLOSE);
}

void mmc_remote_stream_fail(struct mmc_stream *stream, int error)
{
	call(stream->team, &(struct mmc_link_call){
				   .kind = MMC_OFFLOAD_FAIL,
				   .stream = stream->index,
				   .arguments = &error,
				   .argument_bytes = sizeof(error),
			   });
}

void mmc_remote_stream_failure(struct mmc_stream *stream,
			       struct mmc_failure *failure)
{
	struct mmc_team *team = stream->team;

	*failure = (struct mmc_failure){ .error = 0 };
	if (call(team, &(struct mmc_link_call){
			       .kind = MMC_OFFLOAD_FAILURE,
			       .stream = stream->index,
			       .answer = failure,
			       .answer_bytes = sizeof(*failure),
		       }) == 0)
		return;
	*failure = (struct mmc_failure){
		.error = -MMC_EIO,
		.epoch = stream->nposted,
		.culprit = team->options.rank,
	};
}

void mmc_remote_stream_reason(struct mmc_stream *stream,
			      struct mmc_unicast_reason *reason)
{
	*reason = (struct mmc_unicast_reason){ .epoch = 0 };
	call(stream->team, &(struct mmc_link_call){
				   .kind = MMC_OFFLOAD_UNICAST,
				   .stream = stream->index,
				   .answer = reason,
				   .answer_bytes = sizeof(*reason),
			   });
}

void mmc_remote_stream_counters(struct mmc_stream *stream, uint64_t *values)
{
	add_counters(stream->team, MMC_OFFLOAD_COUNT, stream->index, values);
}
