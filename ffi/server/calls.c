/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of a host: see enum mmc_offload_call_kind for their arguments and answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/ring.h"
#include "server/state.h"
#include "support/error.h"

/* A call in progress. */
struct call {
	struct mmc_server *server;
	struct mmc_stream *stream;   /* that the mailbox names, or NULL */
	struct mmc_request *request; /* that the mailbox names, or NULL */
	uint32_t number;	     /* that the mailbox names as its stream */
	uint8_t *body;		     /* arguments, then the answer */
	uint32_t argument_bytes;
	uint32_t answer_bytes; /* the function sets it */
};

/* Copies arguments out of the mailbox. Returns whether the host has passed them all. */
static bool read_arguments(const struct call *call, void *arguments,
			   size_t nbytes)
{
	if (call->argument_bytes != nbytes)
		return false;
	memcpy(arguments, call->body, nbytes);
	return true;
}

/* Returns whether an answer fits in the mailbox, and then states its length. */
static bool has_room(struct call *call, uint64_t nbytes)
{
	if (nbytes > call->server->mailbox_bytes)
		return false;
	call->answer_bytes = (uint32_t)nbytes;
	return true;
}

static void write_answer(struct call *call, const void *answer, size_t nbytes)
{
	if (has_room(call, nbytes))
		memcpy(call->body, answer, nbytes);
}

/* ---- teams --------------------------------------------------------------- */

static int open_team(struct call *call)
{
	struct mmc_server *server = call->server;
	struct mmc_team_options options;
	int rv;

	if (server->team != NULL ||
	    !read_arguments(call, &options, sizeof(options)))
		return -MMC_EINVAL;
	options.fault[sizeof(options.fault) - 1] = 0;
	options.interface.name[sizeof(options.interface.name) - 1] = 0;
	options.device.name[sizeof(options.device.name) - 1] = 0;
	options.device.interface[sizeof(options.device.interface) - 1] = 0;
	options.proxy[0] = 0;
	free(server->tables);
	server->tables =
		calloc((size_t)2 * options.nranks + 1, sizeof(*server->tables));
	if (server->tables == NULL)
		return -MMC_ENOMEM;
	rv = mmc_team_create(server->engine, &options, &server->team);
	if (rv != 0) {
		server->team = NULL;
		return rv;
	}
	server->nranks = options.nranks;
	if (has_room(call, mmc_team_address_bytes(server->team)))
		mmc_team_address(server->team, call->body);
	return 0;
}

static int protect(struct call *call)
{
	struct mmc_secret *secret;
	int rv = mmc_secret_create(&secret);

	if (rv != 0)
		return rv;
	rv = -MMC_EINVAL;
	if (read_arguments(call, mmc_secret_bytes(secret), MMC_SECRET_BYTES))
		rv = mmc_team_protect(call->server->team, secret);
	memset(call->body, 0, MMC_SECRET_BYTES);
	mmc_secret_free(secret);
	return rv;
}

static int connect(struct call *call)
{
	const struct mmc_server *server = call->server;
	uint64_t nbytes =
		(uint64_t)server->nranks * mmc_team_address_bytes(server->team);

	if (call->argument_bytes != nbytes)
		return -MMC_EINVAL;
	return mmc_team_connect(server->team, call->body);
}

static int probe(struct call *call)
{
	struct mmc_probe probe;
	uint64_t slice_ns;
	int rv;

	if (!read_arguments(call, &slice_ns, sizeof(slice_ns)))
		return -MMC_EINVAL;
	rv = mmc_team_probe(call->server->team, slice_ns, &probe);
	if (rv == 0)
		write_answer(call, &probe, sizeof(probe));
	return rv;
}

static int survey(struct call *call)
{
	uint32_t arguments[2];

	if (!read_arguments(call, arguments, sizeof(arguments)))
		return -MMC_EINVAL;
	return mmc_team_survey_begin(call->server->team, arguments[0],
				     arguments[1]);
}

static int burst(struct call *call)
{
	struct mmc_burst burst;

	if (!read_arguments(call, &burst, sizeof(burst)))
		return -MMC_EINVAL;
	return mmc_team_survey_send(call->server->team, &burst);
}

static int listen(struct call *call)
{
	const struct mmc_server *server = call->server;
	uint64_t slice_ns;

	if (!read_arguments(call, &slice_ns, sizeof(slice_ns)) ||
	    !has_room(call,
		      (uint64_t)server->nranks * sizeof(struct mmc_hearing)))
		return -MMC_EINVAL;
	return mmc_team_survey_listen(server->team, slice_ns,
				      (void *)call->body);
}

static int counters(struct call *call)
{
	if (!has_room(call, mmc_counter_count() * sizeof(uint64_t)))
		return -MMC_EINVAL;
	mmc_team_counters(call->server->team, (void *)call->body);
	return 0;
}

static int strangers(struct call *call)
{
	struct mmc_stranger found[MMC_STRANGERS_MAX];
	uint32_t nfound = mmc_team_strangers(call->server->team, found);

	write_answer(call, found, nfound * sizeof(*found));
	return 0;
}

/* ---- streams ------------------------------------------------------------- */

static int create(struct call *call)
{
	struct mmc_server *server = call->server;
	struct mmc_stream_options options;

	if (call->number >= MMC_OFFLOAD_STREAMS || call->stream != NULL ||
	    !read_arguments(call, &options, sizeof(options)))
		return -MMC_EINVAL;
	return mmc_stream_create(server->team, &options,
				 &server->streams[call->number]);
}

static int leave(struct call *call)
{
	mmc_stream_leave(call->stream);
	return 0;
}

static int fail(struct call *call)
{
	int32_t error;

	if (!read_arguments(call, &error, sizeof(error)) || error >= 0)
		return -MMC_EINVAL;
	mmc_stream_fail(call->stream, error);
	return 0;
}

static int close(struct call *call)
{
	mmc_server_report(call->server);
	mmc_server_close_stream(call->server, call->number);
	return 0;
}

static int failure(struct call *call)
{
	struct mmc_failure found;

	mmc_stream_failure(call->stream, &found);
	write_answer(call, &found, sizeof(found));
	return 0;
}

static int unicast(struct call *call)
{
	struct mmc_unicast_reason reason;

	mmc_stream_unicast_reason(call->stream, &reason);
	write_answer(call, &reason, sizeof(reason));
	return 0;
}

static int count(struct call *call)
{
	if (!has_room(call, mmc_counter_count() * sizeof(uint64_t)))
		return -MMC_EINVAL;
	mmc_stream_counters(call->stream, (void *)call->body);
	return 0;
}

/* ---- requests ------------------------------------------------------------ */

static int cancel(struct call *call)
{
	struct mmc_server *server = call->server;

	mmc_request_cancel(call->request);
	/* The driver may take several rounds to end what the device places. */
	while (mmc_request_wait(call->request, 0) == MMC_EAGAIN)
		mmc_engine_make_progress(server->engine);
	mmc_server_report(server);
	return 0;
}

static int waiting(struct call *call)
{
	struct mmc_waiting found;

	mmc_request_waiting(call->request, &found);
	write_answer(call, &found, sizeof(found));
	return 0;
}

/* ---- regions ------------------------------------------------------------- */

static int region(struct call *call)
{
	struct mmc_server *server = call->server;
	struct mmc_mapped *mapped;
	uint64_t arguments[2];
	void *memory;
	int rv;

	if (!read_arguments(call, arguments, sizeof(arguments)) ||
	    arguments[0] >= MMC_OFFLOAD_REGIONS ||
	    server->mapped[arguments[0]].bytes != NULL)
		return -MMC_EINVAL;
	mapped = &server->mapped[arguments[0]];
	rv = server->host->map(server->context, (uint32_t)arguments[0],
			       arguments[1], &memory);
	if (rv == 0)
		*mapped = (struct mmc_mapped){ .bytes = memory,
					       .nbytes = arguments[1] };
	return rv;
}

static int unregion(struct call *call)
{
	struct mmc_server *server = call->server;
	uint64_t number;

	if (!read_arguments(call, &number, sizeof(number)) ||
	    number >= MMC_OFFLOAD_REGIONS ||
	    server->mapped[number].bytes == NULL)
		return -MMC_EINVAL;
	mmc_server_report(server);
	if (server->mapped[number].nused > 0) {
		mmc_error_set("%u operations in flight use the region",
			      server->mapped[number].nused);
		return -MMC_EINVAL;
	}
	server->host->unmap(server->context, server->mapped[number].bytes);
	server->mapped[number].bytes = NULL;
	return 0;
}

/* ---- dispatch ------------------------------------------------------------ */

/* What has to exist for a call. */
enum needs {
	NEEDS_NOTHING,
	NEEDS_TEAM,
	NEEDS_STREAM,
	NEEDS_REQUEST,
};

static const struct {
	int (*function)(struct call *call);
	enum needs needs;
} functions[] = {
	[MMC_OFFLOAD_OPEN] = { open_team, NEEDS_NOTHING },
	[MMC_OFFLOAD_PROTECT] = { protect, NEEDS_TEAM },
	[MMC_OFFLOAD_CONNECT] = { connect, NEEDS_TEAM },
	[MMC_OFFLOAD_PROBE] = { probe, NEEDS_TEAM },
	[MMC_OFFLOAD_SURVEY] = { survey, NEEDS_TEAM },
	[MMC_OFFLOAD_BURST] = { burst, NEEDS_TEAM },
	[MMC_OFFLOAD_LISTEN] = { listen, NEEDS_TEAM },
	[MMC_OFFLOAD_COUNTERS] = { counters, NEEDS_TEAM },
	[MMC_OFFLOAD_STRANGERS] = { strangers, NEEDS_TEAM },
	[MMC_OFFLOAD_CREATE] = { create, NEEDS_TEAM },
	[MMC_OFFLOAD_LEAVE] = { leave, NEEDS_STREAM },
	[MMC_OFFLOAD_FAIL] = { fail, NEEDS_STREAM },
	[MMC_OFFLOAD_CLOSE] = { close, NEEDS_STREAM },
	[MMC_OFFLOAD_FAILURE] = { failure, NEEDS_STREAM },
	[MMC_OFFLOAD_UNICAST] = { unicast, NEEDS_STREAM },
	[MMC_OFFLOAD_COUNT] = { count, NEEDS_STREAM },
	[MMC_OFFLOAD_CANCEL] = { cancel, NEEDS_REQUEST },
	[MMC_OFFLOAD_WAITING] = { waiting, NEEDS_REQUEST },
	[MMC_OFFLOAD_REGION] = { region, NEEDS_NOTHING },
	[MMC_OFFLOAD_UNREGION] = { unregion, NEEDS_NOTHING },
};

static bool has_needed(const struct call *call, enum needs needs)
{
	switch (needs) {
	case NEEDS_TEAM:
		return call->server->team != NULL;
	case NEEDS_STREAM:
		return call->stream != NULL;
	case NEEDS_REQUEST:
		return call->request != NULL;
	default:
		return true;
	}
}

static int carry_out(struct call *call, uint32_t kind)
{
	mmc_error_set("the call breaks the offload ABI");
	if (kind >= sizeof(functions) / sizeof(*functions) ||
	    functions[kind].function == NULL ||
	    call->argument_bytes > call->server->mailbox_bytes) {
		call->server->broken = true;
		return -MMC_EINVAL;
	}
	/* An operation may have ended that the host is about to ask for. */
	if (!has_needed(call, functions[kind].needs))
		return -MMC_EINVAL;
	return functions[kind].function(call);
}

void mmc_server_answer(struct mmc_server *server, uint32_t kind)
{
	struct mmc_offload_mailbox *mailbox = &server->bridge->mailbox;
	struct call call = {
		.server = server,
		.number = mailbox->stream,
		.body = mailbox->body,
		.argument_bytes = mailbox->body_bytes,
	};
	uint32_t request = mailbox->request;
	uint32_t ncalled = mailbox->ncalled;

	if (call.number < MMC_OFFLOAD_STREAMS)
		call.stream = server->streams[call.number];
	if (request < MMC_OFFLOAD_REQUESTS)
		call.request = server->served[request].request;
	mailbox->status = carry_out(&call, kind);
	mailbox->body_bytes = call.answer_bytes;
	if (mailbox->status < 0)
		snprintf(mailbox->text, sizeof(mailbox->text), "%s",
			 mmc_last_error());
	mmc_ring_show(&mailbox->nanswered, ncalled);
	if (mmc_ring_must_ring(&server->bridge->completions))
		server->host->ring(server->context);
}
