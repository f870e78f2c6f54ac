/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's stand-in notices changes, and a nonce that is used twice with a key. */
#include "check.h"
#include "core/wire/header.h"
#include "sim/seals.h"

static struct mmc_seals seals;
static uint8_t nonce[MMC_NONCE_BYTES_MAX];
static uint8_t header[MMC_HEADER_BYTES];
static uint8_t body[40];
static uint8_t to[40];

static const struct mmc_text text = {
	.nonce = nonce,
	.header = header,
	.header_bytes = sizeof(header),
	.body = body,
	.body_bytes = sizeof(body),
	.to = to,
};

static void *cipher_of(uint8_t first)
{
	uint8_t key[MMC_KEY_BYTES] = { first };
	void *cipher = NULL;

	CHECK_EQ(mmc_sim_primitive.open_cipher(key, true, &cipher), 0);
	return cipher;
}

static void seal_numbers(void *cipher, uint32_t first, uint32_t count)
{
	uint8_t tag[MMC_TAG_BYTES];

	for (uint32_t number = first; number < first + count; number++) {
		mmc_put_u32(nonce, number);
		CHECK_EQ(mmc_sim_primitive.seal(cipher, &text, tag), 0);
	}
}

static void a_repeated_nonce_is_noticed(void)
{
	void *ciphers[2];

	mmc_seals_enter(&seals);
	ciphers[0] = cipher_of(1);
	ciphers[1] = cipher_of(2);
	seal_numbers(ciphers[0], 0, 5000);
	seal_numbers(ciphers[1], 0, 5000);
	CHECK_EQ(seals.count, 10000);
	CHECK(!seals.repeated);
	seal_numbers(ciphers[0], 4321, 1);
	CHECK(seals.repeated);
	CHECK_EQ(seals.count, 10000);
	for (unsigned i = 0; i < 2; i++)
		mmc_sim_primitive.close_cipher(ciphers[i]);
	mmc_seals_free(&seals);
}

static void changes_are_noticed(void)
{
	uint8_t *parts[] = { nonce, header, body };
	uint8_t tag[MMC_TAG_BYTES];
	void *cipher;

	mmc_seals_enter(&seals);
	cipher = cipher_of(1);
	CHECK_EQ(mmc_sim_primitive.seal(cipher, &text, tag), 0);
	CHECK(mmc_sim_primitive.open(cipher, &text, tag));
	CHECK_BYTES(to, body, sizeof(body));
	for (unsigned i = 0; i < 3; i++) {
		parts[i][3] ^= 4;
		CHECK(!mmc_sim_primitive.open(cipher, &text, tag));
		parts[i][3] ^= 4;
	}
	tag[9] ^= 1;
	CHECK(!mmc_sim_primitive.open(cipher, &text, tag));
	mmc_sim_primitive.close_cipher(cipher);
	mmc_seals_free(&seals);
}

CHECK_MAIN(CHECK_TEST(a_repeated_nonce_is_noticed),
	   CHECK_TEST(changes_are_noticed))
