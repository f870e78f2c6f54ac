/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/udp/filter.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <mpimcast/counters.h>
#include <sys/socket.h>

#include "core/wire/header.h"
#include "drivers/udp/udp.h"
#include "support/assert.h"

/*
 * Where a filter finds the source of a datagram, and the parts of its channel above the
 * checksum. Offsets count from the UDP header on, or from the IPv4 header on if
 * SKF_NET_OFF is added.
 */
#define SOURCE_PORT 0
#define SOURCE_IP ((uint32_t)SKF_NET_OFF + 12)
#define UDP_HEADER_BYTES 8
#define CHANNEL_HIGH UDP_HEADER_BYTES
#define CHANNEL_LOW (UDP_HEADER_BYTES + 4)

/* How many instructions compare a datagram with one source or channel, at most. */
#define STEPS_EACH 5

/* As many sources can be refused; as many can be known, by two addresses each. */
#define STEPS_MAX                                                              \
	(STEPS_EACH * (3 * MMC_UDP_RANKS_APART_MAX + MMC_GUARD_CHANNELS_MAX) + \
	 16)

_Static_assert(STEPS_MAX < BPF_MAXINSNS, "the kernel takes a filter so long");

struct program {
	struct sock_filter steps[STEPS_MAX];
	unsigned short len;
};

static void add(struct program *program, struct sock_filter step)
{
	MMC_ASSERT(program->len < STEPS_MAX);
	program->steps[program->len++] = step;
}

/* Adds the end of the filter: `nbytes` of the datagram pass, and 0 drops it. */
static void add_verdict(struct program *program, uint32_t nbytes)
{
	add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, nbytes));
}

/* A mark of a datagram: a half-word and a word, each at an offset. */
struct mark {
	uint32_t half_at;
	uint32_t half;
	uint32_t word_at;
	uint32_t word;
};

static struct mark source_mark(const struct sockaddr_in *source)
{
	return (struct mark){
		.half_at = SOURCE_PORT,
		.half = ntohs(source->sin_port),
		.word_at = SOURCE_IP,
		.word = ntohl(source->sin_addr.s_addr),
	};
}

static struct mark channel_mark(uint64_t channel)
{
	return (struct mark){
		.half_at = CHANNEL_LOW,
		.half = (uint32_t)(channel >> 16) & 0xffff,
		.word_at = CHANNEL_HIGH,
		.word = (uint32_t)(channel >> 32),
	};
}

/* Adds steps that skip the step behind them, unless the datagram bears the mark. */
static void add_comparison(struct program *program, struct mark mark)
{
	const struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, mark.half_at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, mark.half, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, mark.word_at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, mark.word, 0, 1),
	};

	for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		add(program, steps[i]);
}

/* Adds a jump whose length close_jumps() sets. */
static void add_jump(struct program *program)
{
	add(program, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
}

/* Has the jumps from step `begin` on lead to the next step. */
static void close_jumps(struct program *program, unsigned begin)
{
	for (unsigned i = begin; i < program->len; i++)
		if (program->steps[i].code == (BPF_JMP | BPF_JA))
			program->steps[i].k = program->len - i - 1;
}

/* Adds the verdict on a stranger's datagram, which is a matter of chance. */
static void add_sampling(struct program *program)
{
	add(program, (struct sock_filter)BPF_STMT(
			     BPF_LD | BPF_W | BPF_ABS,
			     (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM)));
	add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
						  MMC_SAMPLED - 1, 0, 1));
	add_verdict(program, 0);
	add_verdict(program, UDP_HEADER_BYTES + MMC_HEADER_BYTES);
}

/* Adds steps that go on only if the datagram is longer than a header. */
static void add_length(struct program *program)
{
	unsigned begin = program->len;

	add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0));
	add(program, (struct sock_filter)BPF_JUMP(
			     BPF_JMP | BPF_JGT | BPF_K,
			     UDP_HEADER_BYTES + MMC_HEADER_BYTES, 0, 1));
	add_jump(program);
	add_sampling(program);
	close_jumps(program, begin);
}

/* Adds steps that go on only if the datagram bears one of the marks. */
static void add_marks(struct program *program, const struct mark *marks,
		      unsigned count)
{
	unsigned begin = program->len;

	for (unsigned i = 0; i < count; i++) {
		add_comparison(program, marks[i]);
		add_jump(program);
	}
	add_sampling(program);
	close_jumps(program, begin);
}

/* Adds steps that go on only if the datagram's channel is one of the filter's. */
static void add_channels(struct program *program,
			 const struct mmc_udp_filter *filter)
{
	struct mark marks[MMC_GUARD_CHANNELS_MAX];

	for (unsigned i = 0; i < filter->nchannels; i++)
		marks[i] = channel_mark(filter->channels[i]);
	add_marks(program, marks, filter->nchannels);
}

/* Adds steps that go on only if the datagram's source is one that the filter knows. */
static void add_sources(struct program *program,
			const struct mmc_udp_filter *filter)
{
	struct mark marks[2 * MMC_UDP_RANKS_APART_MAX];

	for (unsigned i = 0; i < 2 * filter->nranks; i++)
		marks[i] = source_mark(&filter->known[i % 2][i / 2]);
	add_marks(program, marks, 2 * filter->nranks);
}

int mmc_udp_filter(int fd, const struct mmc_udp_filter *filter)
{
	struct program program = { .len = 0 };
	struct sock_fprog attached = { .filter = program.steps };

	MMC_ASSERT(filter->nrefused <= MMC_UDP_RANKS_APART_MAX);
	MMC_ASSERT(filter->nchannels <= MMC_GUARD_CHANNELS_MAX);
	MMC_ASSERT(filter->nranks <= MMC_UDP_RANKS_APART_MAX);
	for (unsigned i = 0; i < filter->nrefused; i++) {
		add_comparison(&program, source_mark(&filter->refused[i]));
		add_verdict(&program, 0);
	}
	if (filter->samples)
		add_length(&program);
	if (filter->samples && filter->nchannels > 0)
		add_channels(&program, filter);
	if (filter->samples && filter->knows_sources)
		add_sources(&program, filter);
	add_verdict(&program, UINT32_MAX);
	attached.len = program.len;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &attached,
			  sizeof(attached));
}
