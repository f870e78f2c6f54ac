/* SPDX-License-Identifier: BSD-3-Clause */
/* What was sealed is opened as it was; what was changed, repeated or made up is not. */
#include <mpimcast/mmc.h>

#include "drivers/protect/nonce.h"
#include "protect_pair.h"

#define HEAD_BYTES (MMC_HEADER_BYTES + MMC_SEAL_BYTES)

static const enum mmc_protect modes[] = { MMC_PROTECT_AUTHENTICATE,
					  MMC_PROTECT_ENCRYPT };

#define FOR_EACH_MODE(mode)                                                    \
	for (const enum mmc_protect *mode = modes; mode < modes + 2; mode++)

/* Checks that an event is the datagram of this index as the engine has sent it. */
static bool is_whole(const struct mmc_event *event, uint32_t index,
		     uint32_t body_bytes)
{
	const uint8_t *body = event->body != NULL
				      ? event->body
				      : event->bytes + MMC_HEADER_BYTES;
	struct mmc_header header;

	if (!CHECK_EQ(event->nbytes, MMC_HEADER_BYTES + body_bytes) ||
	    !CHECK_EQ(mmc_header_decode(&header, event->bytes, event->nbytes,
					MMC_CHECKSUM_HEADER),
		      0) ||
	    !CHECK_EQ(header.index, index))
		return false;
	for (uint32_t i = 0; i < body_bytes; i++)
		if (!CHECK_EQ(body[i], body_byte(index, i)))
			return false;
	return true;
}

static void datagrams_come_out_as_they_went_in(void)
{
	static const uint32_t sizes[] = { 0, 1, 15, 16, 17, 64, 1000, 1456 };
	struct mmc_event events[WIRE_MAX];

	FOR_EACH_MODE(mode)
	{
		for (unsigned apart = 0; apart < 2; apart++) {
			uint32_t index = MMC_INDEX_CONTROL;

			open_pair(*mode);
			wire.apart = apart;
			for (unsigned i = 0; i < 8; i++, index += 20) {
				CHECK_EQ(send_some(index, 20, sizes[i]), 0);
				CHECK_EQ(receive_some(events), 20);
				for (unsigned n = 0; n < 20; n++)
					is_whole(&events[n], index + n,
						 sizes[i]);
			}
			CHECK_EQ(wire.nrefused[MMC_REFUSED_FORGED], 0);
			CHECK_EQ(wire.nrefused[MMC_REFUSED_REPLAYED], 0);
			close_pair();
		}
	}
}

/* A call of more datagrams than a batch takes two calls of the driver, and no more. */
static void a_train_stays_a_train(void)
{
	struct mmc_event events[WIRE_MAX];

	open_pair(MMC_PROTECT_ENCRYPT);
	CHECK_EQ(send_some(0, MMC_BATCH_DATAGRAMS_MAX, BODY_BYTES), 0);
	CHECK_EQ(wire.nsends, 1);
	CHECK_EQ(receive_some(events), MMC_BATCH_DATAGRAMS_MAX);
	for (unsigned n = 0; n < MMC_BATCH_DATAGRAMS_MAX; n++)
		is_whole(&events[n], n, BODY_BYTES);
	CHECK_EQ(send_some(100, MMC_BATCH_DATAGRAMS_MAX + 1, 1), 0);
	CHECK_EQ(wire.nsends, 3);
	wire.count = 0;
	close_pair();
}

/* With `encrypt` no 16 bytes of a body are on the wire, and equal bodies look unlike. */
static void encrypted_bodies_cannot_be_read(void)
{
	uint8_t body[BODY_BYTES];

	open_pair(MMC_PROTECT_ENCRYPT);
	CHECK_EQ(send_some(5, 1, BODY_BYTES), 0);
	CHECK_EQ(send_some(5, 1, BODY_BYTES), 0);
	for (uint32_t i = 0; i < BODY_BYTES; i++)
		body[i] = body_byte(5, i);
	for (uint32_t i = 0; i + 16 <= wire.nbytes[0]; i++)
		for (uint32_t j = 0; j + 16 <= BODY_BYTES; j++)
			if (!CHECK(memcmp(wire.bytes[0] + i, body + j, 16) !=
				   0))
				return;
	for (uint32_t i = HEAD_BYTES; i + 16 <= wire.nbytes[0]; i++)
		CHECK(memcmp(wire.bytes[0] + i, wire.bytes[1] + i, 16) != 0);
	wire.count = 0;
	close_pair();
}

/* A bit changed anywhere, or a byte fewer or more, makes a datagram forged. */
static void no_bit_can_be_changed(void)
{
	enum { BYTES = HEAD_BYTES + 33 };
	struct mmc_event events[WIRE_MAX];
	uint64_t nforged = 0;

	FOR_EACH_MODE(mode)
	{
		uint8_t good[BYTES];

		open_pair(*mode);
		CHECK_EQ(send_some(9, 1, 33), 0);
		CHECK_EQ(wire.nbytes[0], BYTES);
		memcpy(good, wire.bytes[0], BYTES);
		for (unsigned bit = 0; bit < BYTES * 8; bit++) {
			memcpy(wire.bytes[0], good, BYTES);
			wire.bytes[0][bit / 8] ^= (uint8_t)(1u << bit % 8);
			wire.nbytes[0] = BYTES;
			wire.count = 1;
			CHECK_EQ(receive_some(events), 0);
			CHECK_EQ(wire.nrefused[MMC_REFUSED_FORGED], bit + 1);
		}
		nforged = wire.nrefused[MMC_REFUSED_FORGED];
		memcpy(wire.bytes[0], good, BYTES);
		for (uint32_t nbytes = 0; nbytes <= BYTES + 1; nbytes++) {
			if (nbytes == BYTES)
				continue;
			wire.nbytes[0] = nbytes;
			wire.count = 1;
			CHECK_EQ(receive_some(events), 0);
			CHECK_EQ(wire.nrefused[MMC_REFUSED_FORGED], ++nforged);
		}
		CHECK_EQ(wire.nrefused[MMC_REFUSED_REPLAYED], 0);
		/* None of these has used up the number of the genuine one. */
		wire.nbytes[0] = BYTES;
		wire.count = 1;
		CHECK_EQ(receive_some(events), 1);
		is_whole(&events[0], 9, 33);
		close_pair();
	}
}

static void longer_datagrams_than_ranks_send_are_forged(void)
{
	struct mmc_event events[WIRE_MAX];

	open_pair(MMC_PROTECT_ENCRYPT);
	wire.nbytes[0] = sizeof(wire.bytes[0]) + 1;
	wire.count = 1;
	CHECK_EQ(receive_some(events), 0);
	CHECK_EQ(wire.nrefused[MMC_REFUSED_FORGED], 1);
	close_pair();
}

static void what_came_before_is_replayed(void)
{
	struct mmc_event events[WIRE_MAX];

	FOR_EACH_MODE(mode)
	{
		for (unsigned control = 0; control < 2; control++) {
			uint32_t index = control ? MMC_INDEX_CONTROL : 0;

			open_pair(*mode);
			CHECK_EQ(send_some(index, 3, 10), 0);
			CHECK_EQ(receive_some(events), 3);
			wire.count = 3;
			CHECK_EQ(receive_some(events), 0);
			CHECK_EQ(wire.nrefused[MMC_REFUSED_REPLAYED], 3);
			CHECK_EQ(wire.nrefused[MMC_REFUSED_FORGED], 0);
			close_pair();
		}
	}
}

/* Chunks and control messages have windows apart, the one wider than the other. */
static void old_datagrams_are_replayed(void)
{
	const unsigned nold = 64 * MMC_PROTECT_CONTROL_WORDS + 64;
	struct mmc_event events[WIRE_MAX];
	uint8_t old[2][HEAD_BYTES + 4];

	open_pair(MMC_PROTECT_AUTHENTICATE);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(send_some(i ? MMC_INDEX_CONTROL : 0, 1, 4), 0);
		memcpy(old[i], wire.bytes[0], sizeof(old[i]));
		wire.count = 0;
	}
	for (unsigned n = 0; n < nold; n += 64) {
		CHECK_EQ(send_some(n, 64, 4), 0);
		CHECK_EQ(receive_some(events), 64);
		CHECK_EQ(send_some(MMC_INDEX_CONTROL | n, 64, 4), 0);
		CHECK_EQ(receive_some(events), 64);
	}
	for (unsigned i = 0; i < 2; i++) {
		memcpy(wire.bytes[0], old[i], sizeof(old[i]));
		wire.nbytes[0] = sizeof(old[i]);
		wire.count = 1;
		CHECK_EQ(receive_some(events), i == 0);
	}
	CHECK_EQ(wire.nrefused[MMC_REFUSED_REPLAYED], 1);
	close_pair();
}

/* A tag is good for the sender, the secret, the team and the mode that it was made for. */
static void a_seal_is_bound_to_all(void)
{
	const struct mmc_primitive *primitive = need_primitive();
	struct mmc_event events[WIRE_MAX];
	struct mmc_endpoint *other;

	open_pair(MMC_PROTECT_AUTHENTICATE);
	CHECK_EQ(send_some(1, 1, 4), 0);
	wire.source = RECEIVER; /* its own address */
	CHECK_EQ(receive_some(events), 0);
	wire.source = SENDER;
	close_pair();

	open_pair(MMC_PROTECT_AUTHENTICATE);
	other = wrap(primitive, MMC_PROTECT_AUTHENTICATE, RECEIVER);
	CHECK_EQ(key_with(other, 8), 0);
	CHECK_EQ(send_some(1, 1, 4), 0);
	CHECK_EQ(receive_by(other, events), 0);
	CHECK_EQ(wire.nrefused[MMC_REFUSED_FORGED], 1);
	other->driver->close(other);
	other = wrap(primitive, MMC_PROTECT_ENCRYPT, RECEIVER);
	CHECK_EQ(key_with(other, 7), 0);
	CHECK_EQ(send_some(2, 1, 0), 0);
	CHECK_EQ(receive_by(other, events), 0);
	CHECK_EQ(wire.nrefused[MMC_REFUSED_FORGED], 2);
	other->driver->close(other);
	wire.nclosed = 0;
	close_pair();
}

/* What comes from no rank's address is not opened; the engine counts it. */
static void strangers_pass_untouched(void)
{
	struct mmc_event events[WIRE_MAX];

	open_pair(MMC_PROTECT_ENCRYPT);
	CHECK_EQ(send_some(1, 1, 4), 0);
	wire.source = MMC_PEER_UNKNOWN;
	CHECK_EQ(receive_some(events), 1);
	CHECK_EQ(events[0].source, MMC_PEER_UNKNOWN);
	CHECK_EQ(wire.nrefused[MMC_REFUSED_FORGED], 0);
	close_pair();
}

/* Neither a secret nor an endpoint is keyed twice, and nothing is sent without a key. */
static void keys_are_used_once(void)
{
	const struct mmc_primitive *primitive = need_primitive();
	struct mmc_endpoint *endpoint;
	struct mmc_secret *secret;

	open_pair(MMC_PROTECT_AUTHENTICATE);
	endpoint = wrap(primitive, MMC_PROTECT_AUTHENTICATE, SENDER);
	CHECK_EQ(endpoint->driver->connect(endpoint, NULL), -MMC_EINVAL);
	CHECK_EQ(wire.nconnected, 0);
	CHECK_EQ(mmc_secret_create(&secret), 0);
	CHECK_EQ(mmc_secret_draw(secret), 0);
	CHECK_EQ(mmc_protect_start(endpoint, secret), 0);
	for (unsigned i = 0; i < MMC_SECRET_BYTES; i++)
		CHECK_EQ(mmc_secret_bytes(secret)[i], 0);
	CHECK_EQ(mmc_protect_start(endpoint, secret), -MMC_EINVAL);
	CHECK_EQ(endpoint->driver->connect(endpoint, NULL), 0);
	CHECK_EQ(wire.nconnected, 1);
	endpoint->driver->close(endpoint);
	endpoint = wrap(primitive, MMC_PROTECT_AUTHENTICATE, SENDER);
	CHECK_EQ(mmc_protect_start(endpoint, secret), -MMC_EINVAL);
	mmc_secret_free(secret);
	endpoint->driver->close(endpoint);
	wire.nclosed = 0;
	close_pair();
}

/* No number that a datagram can name is beyond those that are sealed. */
static void numbers_beyond_the_last_are_forged(void)
{
	struct mmc_event events[WIRE_MAX];

	open_pair(MMC_PROTECT_AUTHENTICATE);
	CHECK_EQ(send_some(1, 1, 4), 0);
	mmc_put_u64(wire.bytes[0] + MMC_HEADER_BYTES, UINT64_MAX);
	CHECK_EQ(receive_some(events), 0);
	CHECK_EQ(wire.nrefused[MMC_REFUSED_FORGED], 1);
	close_pair();
}

CHECK_MAIN(CHECK_TEST(datagrams_come_out_as_they_went_in),
	   CHECK_TEST(a_train_stays_a_train),
	   CHECK_TEST(encrypted_bodies_cannot_be_read),
	   CHECK_TEST(no_bit_can_be_changed),
	   CHECK_TEST(longer_datagrams_than_ranks_send_are_forged),
	   CHECK_TEST(what_came_before_is_replayed),
	   CHECK_TEST(old_datagrams_are_replayed),
	   CHECK_TEST(a_seal_is_bound_to_all),
	   CHECK_TEST(strangers_pass_untouched), CHECK_TEST(keys_are_used_once),
	   CHECK_TEST(numbers_beyond_the_last_are_forged))
