/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the barriers of all ranks in one process, over a network that loses, repeats and
 * reorders messages. No rank passes before all have joined, and every rank that passes
 * knows the merged terms of all.
 */
#include "check.h"
#include "core/barrier/barrier.h"
#include "core/wire/record.h"
#include "support/prng.h"

#define NRANKS_MAX 33
#define MESSAGES_MAX 4096
#define LOSS_NONE 0

struct message {
	uint32_t source;
	uint32_t target;
	bool joined;
	uint32_t rounds;
	struct mmc_terms terms;
	bool asks;
};

struct rank {
	struct mmc_barrier barrier;
	struct mmc_terms terms;
};

struct net {
	struct mmc_prng prng;
	uint32_t nranks;
	uint32_t njoined;
	struct rank ranks[NRANKS_MAX];
	struct mmc_terms all; /* what every rank must end up with */
	struct message messages[MESSAGES_MAX];
	unsigned nmessages;
	unsigned nsent;
	uint64_t loss; /* of 2^32 messages, how many are lost */
};

static bool equal_terms(const struct mmc_terms *a, const struct mmc_terms *b)
{
	return a->signature_min == b->signature_min &&
	       a->signature_max == b->signature_max &&
	       a->window_bytes == b->window_bytes &&
	       a->source_bytes == b->source_bytes && a->srtt_us == b->srtt_us &&
	       a->lag_epochs == b->lag_epochs && a->parity == b->parity;
}

static void net_open(struct net *net, uint32_t nranks, uint64_t seed,
		     uint64_t loss)
{
	struct mmc_prng *prng = &net->prng;

	*net = (struct net){
		.prng = { .state = seed },
		.nranks = nranks,
		.loss = loss,
	};
	for (uint32_t r = 0; r < nranks; r++) {
		struct rank *rank = &net->ranks[r];

		mmc_barrier_init(&rank->barrier, r, nranks);
		rank->terms = (struct mmc_terms){
			.signature_min = mmc_prng_next(prng),
			.signature_max = mmc_prng_next(prng),
			.window_bytes = (uint32_t)mmc_prng_next(prng),
			.source_bytes = (uint32_t)mmc_prng_next(prng),
			.srtt_us = (uint32_t)mmc_prng_next(prng),
			.lag_epochs = (uint32_t)mmc_prng_next(prng),
			.parity = (uint32_t)mmc_prng_next(prng),
		};
		if (r == 0)
			net->all = rank->terms;
		mmc_terms_merge(&net->all, &rank->terms);
	}
}

static void post(struct net *net, uint32_t source, uint32_t target, bool asks)
{
	const struct rank *rank = &net->ranks[source];
	unsigned copies = 1 + mmc_prng_chance(&net->prng, net->loss / 2);

	net->nsent++;
	if (mmc_prng_chance(&net->prng, net->loss))
		return;
	while (copies-- > 0 && net->nmessages < MESSAGES_MAX)
		net->messages[net->nmessages++] = (struct message){
			.source = source,
			.target = target,
			.joined = rank->barrier.is_in,
			.rounds = rank->barrier.rounds,
			.terms = rank->terms,
			.asks = asks,
		};
}

/* Sends a joined rank's pending messages, and checks the terms once it has passed. */
static void tell(struct net *net, uint32_t r)
{
	uint32_t peer;

	while (mmc_barrier_next(&net->ranks[r].barrier, &peer)) {
		CHECK(peer < net->nranks);
		CHECK(peer != r);
		post(net, r, peer, false);
	}
	if (mmc_barrier_passed(&net->ranks[r].barrier)) {
		CHECK_EQ(net->njoined, net->nranks);
		CHECK(equal_terms(&net->ranks[r].terms, &net->all));
	}
}

static void join(struct net *net, uint32_t r)
{
	CHECK(!mmc_barrier_passed(&net->ranks[r].barrier));
	net->njoined++;
	mmc_barrier_join(&net->ranks[r].barrier);
	tell(net, r);
}

static void deliver(struct net *net, const struct message *message)
{
	struct rank *rank = &net->ranks[message->target];
	uint8_t before = rank->barrier.rounds;

	if (message->joined) {
		bool grew;

		mmc_terms_merge(&rank->terms, &message->terms);
		grew = mmc_barrier_hear(&rank->barrier, message->source,
					message->rounds);
		CHECK_EQ(grew, rank->barrier.rounds > before);
		CHECK(rank->barrier.rounds >= before);
		tell(net, message->target);
	}
	if (message->asks)
		post(net, message->target, message->source, false);
}

/* Delivers one waiting message, chosen at random. */
static void deliver_any(struct net *net)
{
	unsigned pick = (unsigned)mmc_prng_below(&net->prng, net->nmessages);
	struct message message = net->messages[pick];

	net->messages[pick] = net->messages[--net->nmessages];
	deliver(net, &message);
}

/* Lets every waiting rank ask the rank that it awaits; returns how many are waiting. */
static unsigned ask_again(struct net *net)
{
	unsigned nwaiting = 0;

	for (uint32_t r = 0; r < net->nranks; r++) {
		const struct mmc_barrier *barrier = &net->ranks[r].barrier;
		uint32_t awaited;

		if (!barrier->is_in || mmc_barrier_passed(barrier))
			continue;
		nwaiting++;
		awaited = mmc_barrier_awaited(barrier);
		if (mmc_barrier_awaited_has_joined(barrier))
			CHECK(net->ranks[awaited].barrier.is_in);
		post(net, r, awaited, true);
	}
	return nwaiting;
}

/* Joins all ranks in random order amid messages, then runs until all have passed. */
static void run(struct net *net)
{
	uint32_t order[NRANKS_MAX];
	unsigned rounds = 0;

	for (uint32_t r = 0; r < net->nranks; r++) {
		uint32_t at = (uint32_t)mmc_prng_below(&net->prng, r + 1);

		order[r] = order[at];
		order[at] = r;
	}
	for (uint32_t i = 0; i < net->nranks; i++) {
		uint64_t ndelivered = mmc_prng_below(&net->prng, 4);

		while (ndelivered-- > 0 && net->nmessages > 0)
			deliver_any(net);
		if (mmc_prng_chance(&net->prng, UINT64_C(1) << 30))
			ask_again(net);
		join(net, order[i]);
	}
	do {
		while (net->nmessages > 0)
			deliver_any(net);
	} while (ask_again(net) > 0 && CHECK(++rounds < 1000));
	for (uint32_t r = 0; r < net->nranks; r++) {
		CHECK(mmc_barrier_passed(&net->ranks[r].barrier));
		CHECK(equal_terms(&net->ranks[r].terms, &net->all));
	}
}

/* Without loss no rank has to ask, and each sends one message a round. */
static void without_loss(void)
{
	static struct net net;

	for (uint32_t nranks = 1; nranks <= NRANKS_MAX; nranks++) {
		uint32_t nrounds = 0;

		while (UINT32_C(1) << nrounds < nranks)
			nrounds++;
		net_open(&net, nranks, nranks, LOSS_NONE);
		for (uint32_t r = 0; r < nranks; r++)
			join(&net, r);
		while (net.nmessages > 0)
			deliver_any(&net);
		CHECK_EQ(ask_again(&net), 0);
		CHECK_EQ(net.nsent, nranks * nrounds);
	}
}

/* All ranks pass, whatever the order in which they join and the network's faults. */
static void any_order_loss_and_duplication(void)
{
	static const uint64_t losses[] = { 0, UINT64_C(1) << 28,
					   UINT64_C(1) << 30,
					   UINT64_C(1) << 31 };
	static struct net net;

	for (uint32_t nranks = 1; nranks <= NRANKS_MAX; nranks++)
		for (uint64_t seed = 0; seed < 40; seed++) {
			net_open(&net, nranks, seed, losses[seed % 4]);
			run(&net);
		}
}

/* A rank that has not joined holds up all others, however often they ask. */
static void one_is_missing(void)
{
	static struct net net;

	for (uint32_t nranks = 2; nranks <= 17; nranks++)
		for (uint32_t late = 0; late < nranks; late++) {
			net_open(&net, nranks, late, LOSS_NONE);
			for (uint32_t r = 0; r < nranks; r++)
				if (r != late)
					join(&net, r);
			for (int i = 0; i < 10; i++) {
				CHECK_EQ(ask_again(&net), nranks - 1);
				while (net.nmessages > 0)
					deliver_any(&net);
			}
			join(&net, late);
			while (net.nmessages > 0)
				deliver_any(&net);
			CHECK_EQ(ask_again(&net), 0);
		}
}

/* From any rank, the awaited ranks lead one by one to the rank that has not joined. */
static void awaited_leads_to_the_late(void)
{
	static struct net net;

	for (uint32_t nranks = 2; nranks <= 17; nranks++)
		for (uint32_t late = 0; late < nranks; late++) {
			net_open(&net, nranks, late, LOSS_NONE);
			for (uint32_t r = 0; r < nranks; r++)
				if (r != late)
					join(&net, r);
			while (net.nmessages > 0)
				deliver_any(&net);
			for (uint32_t r = 0; r < nranks; r++) {
				uint32_t at = r;
				unsigned nhops = 0;

				while (at != late && CHECK(nhops++ < nranks))
					at = mmc_barrier_awaited(
						&net.ranks[at].barrier);
			}
		}
}

/* Only other ranks of the team move a barrier, and no claim moves it past its end. */
static void hostile_hearsay(void)
{
	struct mmc_prng prng = { .state = 16 };

	for (uint32_t nranks = 1; nranks <= 17; nranks++) {
		struct mmc_barrier barrier;

		mmc_barrier_init(&barrier, 0, nranks);
		mmc_barrier_join(&barrier);
		for (int i = 0; i < 1000; i++) {
			uint32_t source = nranks;

			source += (uint32_t)mmc_prng_below(&prng,
							   UINT32_MAX - nranks);
			CHECK(!mmc_barrier_hear(&barrier, source, UINT32_MAX));
		}
		CHECK(!mmc_barrier_hear(&barrier, 0, UINT32_MAX) ||
		      nranks == 1);
		CHECK_EQ(barrier.rounds, 0);
		for (uint32_t source = 1; source < nranks; source++)
			mmc_barrier_hear(&barrier, source, UINT32_MAX);
		CHECK(mmc_barrier_passed(&barrier));
		CHECK_EQ(barrier.rounds, barrier.nrounds);
	}
}

/* Rounds that bring something count only once that has come, in whatever order. */
static void rounds_that_bring(void)
{
	for (uint32_t nranks = 2; nranks <= 17; nranks++)
		for (uint32_t first = 0; first < 2; first++) {
			struct mmc_barrier barrier;
			uint8_t rounds = 0;

			mmc_barrier_init(&barrier, 0, nranks);
			mmc_barrier_demand(&barrier);
			mmc_barrier_join(&barrier);
			for (unsigned k = 0; k < barrier.nrounds; k++) {
				uint32_t source = nranks - (UINT32_C(1) << k);

				CHECK_EQ(mmc_barrier_round(&barrier, source, 0),
					 k);
				if (first)
					CHECK(!mmc_barrier_hear(&barrier,
								source, k));
				else
					CHECK(!mmc_barrier_bring(&barrier,
								 source));
				CHECK_EQ(barrier.rounds, rounds);
				if (first)
					CHECK(mmc_barrier_bring(&barrier,
								source));
				else
					CHECK(mmc_barrier_hear(&barrier, source,
							       k));
				CHECK_EQ(barrier.rounds, ++rounds);
			}
			CHECK(mmc_barrier_passed(&barrier));
		}
}

/* In a star all wait for the hub, which waits for nobody and counts nobody's word. */
static void star(void)
{
	for (uint32_t nranks = 2; nranks <= 17; nranks++)
		for (uint32_t r = 0; r < nranks; r++) {
			struct mmc_barrier barrier;
			uint32_t hub = nranks / 2;
			uint32_t peer;

			mmc_barrier_init(&barrier, r, nranks);
			mmc_barrier_make_star(&barrier, hub);
			mmc_barrier_join(&barrier);
			CHECK(!mmc_barrier_next(&barrier, &peer));
			CHECK_EQ(mmc_barrier_passed(&barrier), r == hub);
			CHECK_EQ(mmc_barrier_round(&barrier, hub, MMC_PEER_ALL),
				 0);
			for (uint32_t source = 0; source < nranks; source++) {
				bool counts = source == hub && r != hub;

				CHECK_EQ(mmc_barrier_round(&barrier, source, r),
					 counts ? 0 : MMC_ROUNDS_MAX);
				CHECK_EQ(mmc_barrier_hear(&barrier, source, 20),
					 counts);
			}
			CHECK(mmc_barrier_passed(&barrier));
		}
}

CHECK_MAIN(CHECK_TEST(without_loss), CHECK_TEST(any_order_loss_and_duplication),
	   CHECK_TEST(one_is_missing), CHECK_TEST(awaited_leads_to_the_late),
	   CHECK_TEST(hostile_hearsay), CHECK_TEST(rounds_that_bring),
	   CHECK_TEST(star))
