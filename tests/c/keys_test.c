/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys differ in all that they are for; nonces differ in all that they number. */
#include <mpimcast/mmc.h>
#include <sys/wait.h>

#include "check.h"
#include "drivers/protect/keys.h"
#include "drivers/protect/nonce.h"
#include "drivers/protect/secret.h"

#define NRANKS 5

/* Writes the key of `sender` in a team whose secret has `byte` everywhere. */
static void key_of(uint8_t *key, uint8_t byte, enum mmc_protect mode,
		   uint64_t team, uint32_t sender)
{
	struct mmc_secret *secret;
	struct mmc_keys keys;

	CHECK_EQ(mmc_keys_init(&keys, mmc_primitive_find(MMC_PRIMITIVE_AES),
			       mode, team, NRANKS),
		 0);
	CHECK(mmc_keys_cipher(&keys, sender, true) == NULL);
	CHECK_EQ(mmc_secret_create(&secret), 0);
	memset(mmc_secret_bytes(secret), byte, MMC_SECRET_BYTES);
	CHECK_EQ(mmc_keys_start(&keys, secret), 0);
	CHECK(mmc_keys_cipher(&keys, sender, true) != NULL);
	CHECK(mmc_keys_cipher(&keys, sender, true) ==
	      mmc_keys_cipher(&keys, sender, true));
	memcpy(key, keys.memory + MMC_SECRET_BYTES + sender * MMC_KEY_BYTES,
	       MMC_KEY_BYTES);
	mmc_secret_free(secret);
	mmc_keys_destroy(&keys);
}

static void each_use_has_a_key_of_its_own(void)
{
	enum { COUNT = 6 };
	uint8_t keys[COUNT][MMC_KEY_BYTES];
	uint8_t again[MMC_KEY_BYTES];

	if (mmc_primitive_open(MMC_PRIMITIVE_AES, "") != 0) {
		printf("skipped: %s\n", mmc_last_error());
		exit(77);
	}
	key_of(keys[0], 1, MMC_PROTECT_ENCRYPT, 10, 0);
	key_of(keys[1], 2, MMC_PROTECT_ENCRYPT, 10, 0);
	key_of(keys[2], 1, MMC_PROTECT_AUTHENTICATE, 10, 0);
	key_of(keys[3], 1, MMC_PROTECT_ENCRYPT, 11, 0);
	key_of(keys[4], 1, MMC_PROTECT_ENCRYPT, 10, 1);
	key_of(keys[5], 1, MMC_PROTECT_ENCRYPT, 10, NRANKS - 1);
	for (unsigned i = 0; i < COUNT; i++)
		for (unsigned j = 0; j < i; j++)
			CHECK(memcmp(keys[i], keys[j], MMC_KEY_BYTES) != 0);
	key_of(again, 1, MMC_PROTECT_ENCRYPT, 10, 0);
	CHECK_BYTES(again, keys[0], MMC_KEY_BYTES);
}

static void secrets_are_drawn_and_spent(void)
{
	uint8_t bytes[MMC_SECRET_BYTES];
	uint8_t zeros[MMC_SECRET_BYTES] = { 0 };
	struct mmc_secret *secret;

	CHECK_EQ(mmc_secret_create(&secret), 0);
	CHECK_BYTES(mmc_secret_bytes(secret), zeros, sizeof(zeros));
	CHECK_EQ(mmc_secret_draw(secret), 0);
	CHECK(memcmp(mmc_secret_bytes(secret), zeros, sizeof(zeros)) != 0);
	CHECK(mmc_secret_spend(secret, bytes));
	CHECK(memcmp(bytes, zeros, sizeof(zeros)) != 0);
	CHECK_BYTES(mmc_secret_bytes(secret), zeros, sizeof(zeros));
	CHECK(!mmc_secret_spend(secret, bytes));
	mmc_secret_free(secret);
	mmc_secret_free(NULL);
}

/* A child of fork() finds zeros where its parent has a secret. */
static void children_have_no_secrets(void)
{
	uint8_t *memory = mmc_secret_allocate(MMC_SECRET_BYTES);
	int status = -1;
	pid_t child;

	memset(memory, 5, MMC_SECRET_BYTES);
	child = fork();
	if (child == 0)
		_exit(memory[0] == 0 && memory[MMC_SECRET_BYTES - 1] == 0 ? 0
									  : 1);
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(memory[0], 5);
	mmc_secret_release(memory, MMC_SECRET_BYTES);
}

static void nonces_hold_rank_class_and_number(void)
{
	static const uint8_t expected[MMC_NONCE_BYTES_MAX] = {
		0, 0, 0, 0, 0, 1, 2, 3, 0x80, 0, 0, 0x44, 0, 0, 0, 5,
	};
	uint8_t nonce[MMC_NONCE_BYTES_MAX];

	CHECK_EQ(mmc_nonce_class_of(7), MMC_NONCE_CHUNK);
	CHECK_EQ(mmc_nonce_class_of(MMC_INDEX_REPAIR | 7), MMC_NONCE_CHUNK);
	CHECK_EQ(mmc_nonce_class_of(MMC_INDEX_CONTROL | 7), MMC_NONCE_CONTROL);
	mmc_nonce_write(nonce, 0x010203, MMC_NONCE_CONTROL,
			UINT64_C(0x4400000005));
	CHECK_BYTES(nonce, expected, sizeof(expected));
}

/* The last numbers are taken, each once; then the key has ended, for good. */
static void a_key_ends_long_before_numbers_wrap(void)
{
	uint64_t latest = 0;
	uint64_t number = 0;

	CHECK_EQ(mmc_nonce_take(&latest, &number), 0);
	CHECK_EQ(number, 1);
	latest = MMC_NONCE_NUMBER_MAX - 2;
	CHECK_EQ(mmc_nonce_take(&latest, &number), 0);
	CHECK_EQ(number, MMC_NONCE_NUMBER_MAX - 1);
	CHECK_EQ(mmc_nonce_take(&latest, &number), 0);
	CHECK_EQ(number, MMC_NONCE_NUMBER_MAX);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_EQ(mmc_nonce_take(&latest, &number), -MMC_EIO);
		CHECK_EQ(number, MMC_NONCE_NUMBER_MAX);
	}
	CHECK(strstr(mmc_last_error(), "make them again") != NULL);
}

CHECK_MAIN(CHECK_TEST(each_use_has_a_key_of_its_own),
	   CHECK_TEST(secrets_are_drawn_and_spent),
	   CHECK_TEST(children_have_no_secrets),
	   CHECK_TEST(nonces_hold_rank_class_and_number),
	   CHECK_TEST(a_key_ends_long_before_numbers_wrap))
