/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/protect/answers.h"

#include <string.h>

#include "drivers/protect/libcrypto.h"

#define BYTES_MAX 64

/* A published result, in hexadecimal; without `sealed` it is one of a MAC alone. */
struct answer {
	enum mmc_primitive_kind kind;
	const char *key;
	const char *nonce;
	const char *header;
	const char *body;
	const char *sealed;
	const char *tag;
};

static const struct answer answers[] = {
	/* McGrew and Viega, The Galois/Counter Mode of Operation, test case 4. */
	{
		.kind = MMC_PRIMITIVE_AES,
		.key = "feffe9928665731c6d6a8f9467308308",
		.nonce = "cafebabefacedbaddecaf888",
		.header = "feedfacedeadbeeffeedfacedeadbeefabaddad2",
		.body = "d9313225f88406e5a55909c5aff5269a"
			"86a7a9531534f7da2e4c303d8a318a72"
			"1c3c0c95956809532fcf0e2449a6b525"
			"b16aedf5aa0de657ba637b39",
		.sealed = "42831ec2217774244b7221b784d0d49c"
			  "e3aa212f2c02a4e035c17e2329aca12e"
			  "21d514b25466931c7d8f6a5aac84aa05"
			  "1ba30b396a0aac973d58e091",
		.tag = "5bc94fbc3221a5db94fae95ae7121a47",
	},
	/* NIST's CAVP, gcmEncryptExtIV128: 128 bits of associated data alone. */
	{
		.kind = MMC_PRIMITIVE_AES,
		.key = "77be63708971c4e240d1cb79e8d77feb",
		.nonce = "e0e00f19fed7ba0136a797f3",
		.header = "7a43ec1d9c0a5a78a0b16533a6213cab",
		.body = "",
		.tag = "209fcc8d3675ed938e9c7166709dd946",
	},
	/* draft-irtf-cfrg-aegis-aead, A.2, test vector 1. */
	{
		.kind = MMC_PRIMITIVE_AEGIS,
		.key = "10010000000000000000000000000000",
		.nonce = "10000200000000000000000000000000",
		.header = "",
		.body = "00000000000000000000000000000000",
		.sealed = "c1c0e58bd913006feba00f4b3cc3594e",
		.tag = "abe0ece80c24868a226a35d16bdae37a",
	},
	/* The same, AEGISMAC-128L. */
	{
		.kind = MMC_PRIMITIVE_AEGIS,
		.key = "10010000000000000000000000000000",
		.nonce = "10000200000000000000000000000000",
		.header = "000102030405060708090a0b0c0d0e0f",
		.body = "101112131415161718191a1b1c1d1e1f202122",
		.tag = "d3f09b2842ad301687d6902c921d7818",
	},
};

/* An answer in bytes. */
struct bytes {
	uint8_t key[MMC_KEY_BYTES];
	uint8_t nonce[MMC_NONCE_BYTES_MAX];
	uint8_t header[BYTES_MAX];
	uint8_t body[BYTES_MAX];
	uint8_t sealed[BYTES_MAX];
	uint8_t tag[MMC_TAG_BYTES];
};

static uint8_t nibble(char digit)
{
	return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* Reads hexadecimal digits; returns how many bytes they are. */
static uint32_t read_hex(uint8_t *bytes, const char *text)
{
	uint32_t nbytes = text == NULL ? 0 : (uint32_t)strlen(text) / 2;

	for (uint32_t i = 0; i < nbytes; i++)
		bytes[i] = (uint8_t)(nibble(text[2 * i]) << 4 |
				     nibble(text[2 * i + 1]));
	return nbytes;
}

/* Returns whether sealing a text gives the known answer. */
static bool seals(const struct mmc_primitive *primitive,
		  const struct bytes *bytes, const struct mmc_text *text)
{
	uint8_t tag[MMC_TAG_BYTES];
	void *cipher;
	bool right;

	if (primitive->open_cipher(bytes->key, true, &cipher) != 0)
		return false;
	right = primitive->seal(cipher, text, tag) == 0 &&
		memcmp(tag, bytes->tag, sizeof(tag)) == 0 &&
		(text->to == NULL ||
		 memcmp(text->to, bytes->sealed, text->body_bytes) == 0);
	primitive->close_cipher(cipher);
	return right;
}

/* Returns whether the sealed text is opened, but not with a bit of its tag changed. */
static bool opens(const struct mmc_primitive *primitive, struct bytes *bytes,
		  const struct mmc_text *text)
{
	void *cipher;
	bool right;

	if (primitive->open_cipher(bytes->key, false, &cipher) != 0)
		return false;
	right = primitive->open(cipher, text, bytes->tag) &&
		(text->to == NULL ||
		 memcmp(text->to, bytes->body, text->body_bytes) == 0);
	bytes->tag[MMC_TAG_BYTES - 1] ^= 1;
	right = right && !primitive->open(cipher, text, bytes->tag);
	primitive->close_cipher(cipher);
	return right;
}

static bool gives(const struct mmc_primitive *primitive,
		  const struct answer *answer)
{
	bool encrypts = answer->sealed != NULL;
	uint8_t to[BYTES_MAX];
	struct bytes bytes;
	struct mmc_text text = {
		.nonce = bytes.nonce,
		.header = bytes.header,
		.header_bytes = read_hex(bytes.header, answer->header),
		.body = bytes.body,
		.body_bytes = read_hex(bytes.body, answer->body),
		.to = encrypts ? to : NULL,
	};

	read_hex(bytes.key, answer->key);
	read_hex(bytes.nonce, answer->nonce);
	read_hex(bytes.sealed, answer->sealed);
	read_hex(bytes.tag, answer->tag);
	if (!seals(primitive, &bytes, &text))
		return false;
	if (encrypts)
		text.body = bytes.sealed;
	return opens(primitive, &bytes, &text);
}

bool mmc_answers_are_right(const struct mmc_primitive *primitive,
			   enum mmc_primitive_kind kind)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i].kind == kind && !gives(primitive, &answers[i]))
			return false;
	return true;
}

bool mmc_answers_derived(void)
{
	static const char expected[] = "8da4e775a563c18f715f802a063c5a31";
	uint8_t known[MMC_KEY_BYTES];
	uint8_t key[MMC_KEY_BYTES];
	uint8_t secret[22];

	memset(secret, 0x0b, sizeof(secret));
	read_hex(known, expected);
	return mmc_libcrypto_derive(secret, sizeof(secret), secret, 0, key) ==
		       0 &&
	       memcmp(key, known, sizeof(key)) == 0;
}
