/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/protect/libcrypto.h"

#include "support/error.h"
#include "support/library.h"

/*
 * OpenSSL's types, functions and numbers, as its manual pages EVP_EncryptInit(3),
 * EVP_KDF(3) and OSSL_PARAM(3) give them: a build needs no headers of OpenSSL.
 */
struct evp_cipher_ctx;
struct evp_cipher;
struct evp_kdf;
struct evp_kdf_ctx;

struct ossl_param {
	const char *key;
	unsigned int data_type;
	void *data;
	size_t data_size;
	size_t return_size;
};

enum {
	OSSL_PARAM_UTF8_STRING = 4,
	OSSL_PARAM_OCTET_STRING = 5,
	EVP_CTRL_AEAD_GET_TAG = 0x10,
	EVP_CTRL_AEAD_SET_TAG = 0x11,
};

/* The functions that are used: X(result, name, arguments). */
#define FUNCTIONS(X)                                                           \
	X(struct evp_cipher_ctx *, EVP_CIPHER_CTX_new, (void))                 \
	X(void, EVP_CIPHER_CTX_free, (struct evp_cipher_ctx *))                \
	X(const struct evp_cipher *, EVP_aes_128_gcm, (void))                  \
	X(int, EVP_CipherInit_ex,                                              \
	  (struct evp_cipher_ctx *, const struct evp_cipher *, void *,         \
	   const uint8_t *, const uint8_t *, int))                             \
	X(int, EVP_CipherUpdate,                                               \
	  (struct evp_cipher_ctx *, uint8_t *, int *, const uint8_t *, int))   \
	X(int, EVP_CipherFinal_ex,                                             \
	  (struct evp_cipher_ctx *, uint8_t *, int *))                         \
	X(int, EVP_CIPHER_CTX_ctrl,                                            \
	  (struct evp_cipher_ctx *, int, int, void *))                         \
	X(struct evp_kdf *, EVP_KDF_fetch,                                     \
	  (void *, const char *, const char *))                                \
	X(void, EVP_KDF_free, (struct evp_kdf *))                              \
	X(struct evp_kdf_ctx *, EVP_KDF_CTX_new, (struct evp_kdf *))           \
	X(void, EVP_KDF_CTX_free, (struct evp_kdf_ctx *))                      \
	X(int, EVP_KDF_derive,                                                 \
	  (struct evp_kdf_ctx *, uint8_t *, size_t,                            \
	   const struct ossl_param *))

#define MEMBER(result, name, arguments) result(*name) arguments;
static struct {
	FUNCTIONS(MEMBER)
} crypto;

#define SYMBOL(result, name, arguments)                                        \
	{ #name, offsetof(__typeof__(crypto), name) },
static const struct mmc_library_symbol symbols[] = { FUNCTIONS(SYMBOL) };

int mmc_libcrypto_open(const char *library)
{
	return mmc_library_open(library[0] == '\0' ? "libcrypto.so.3" : library,
				symbols, sizeof(symbols) / sizeof(symbols[0]),
				&crypto);
}

/* ---- the cipher ---------------------------------------------------------- */

static int open_cipher(const uint8_t *key, bool seals, void **cipher)
{
	struct evp_cipher_ctx *ctx = crypto.EVP_CIPHER_CTX_new();

	if (ctx == NULL)
		return -MMC_ENOMEM;
	if (crypto.EVP_CipherInit_ex(ctx, crypto.EVP_aes_128_gcm(), NULL, key,
				     NULL, seals) != 1) {
		crypto.EVP_CIPHER_CTX_free(ctx);
		return -MMC_ENOMEM;
	}
	*cipher = ctx;
	return 0;
}

static void close_cipher(void *cipher)
{
	crypto.EVP_CIPHER_CTX_free(cipher);
}

/*
 * Puts a text through the cipher. Without a place for the encrypted body that is
 * associated data, like the header. Returns whether the library has done it.
 */
static bool pass(struct evp_cipher_ctx *ctx, const struct mmc_text *text)
{
	int length;

	/* A direction of -1 means that of open_cipher(). */
	return crypto.EVP_CipherInit_ex(ctx, NULL, NULL, NULL, text->nonce,
					-1) == 1 &&
	       crypto.EVP_CipherUpdate(ctx, NULL, &length, text->header,
				       (int)text->header_bytes) == 1 &&
	       (text->body_bytes == 0 ||
		crypto.EVP_CipherUpdate(ctx, text->to, &length, text->body,
					(int)text->body_bytes) == 1);
}

static int seal(void *cipher, const struct mmc_text *text, uint8_t *tag)
{
	uint8_t nothing[MMC_TAG_BYTES];
	int length;

	if (pass(cipher, text) &&
	    crypto.EVP_CipherFinal_ex(cipher, nothing, &length) == 1 &&
	    crypto.EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG,
				       MMC_TAG_BYTES, tag) == 1)
		return 0;
	mmc_error_set("libcrypto cannot seal a datagram");
	return -MMC_EIO;
}

static bool open_text(void *cipher, const struct mmc_text *text,
		      const uint8_t *tag)
{
	uint8_t nothing[MMC_TAG_BYTES];
	uint8_t expected[MMC_TAG_BYTES];
	int length;

	/* The library copies the tag, but its type does not say that it only reads. */
	for (unsigned i = 0; i < MMC_TAG_BYTES; i++)
		expected[i] = tag[i];
	return pass(cipher, text) &&
	       crypto.EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG,
					  MMC_TAG_BYTES, expected) == 1 &&
	       crypto.EVP_CipherFinal_ex(cipher, nothing, &length) == 1;
}

/* ---- keys ---------------------------------------------------------------- */

static struct ossl_param octets(const char *key, const uint8_t *bytes,
				size_t nbytes)
{
	return (struct ossl_param){
		.key = key,
		.data_type = OSSL_PARAM_OCTET_STRING,
		.data = (void *)(uintptr_t)bytes,
		.data_size = nbytes,
	};
}

int mmc_libcrypto_derive(const uint8_t *secret, size_t secret_bytes,
			 const uint8_t *info, size_t info_bytes, uint8_t *key)
{
	char digest[] = "SHA256";
	const struct ossl_param params[] = {
		{ "digest", OSSL_PARAM_UTF8_STRING, digest, sizeof(digest) - 1,
		  0 },
		octets("key", secret, secret_bytes),
		octets("info", info, info_bytes),
		{ NULL, 0, NULL, 0, 0 },
	};
	struct evp_kdf *kdf = crypto.EVP_KDF_fetch(NULL, "HKDF", NULL);
	struct evp_kdf_ctx *ctx = NULL;
	bool derived;

	if (kdf != NULL)
		ctx = crypto.EVP_KDF_CTX_new(kdf);
	derived = ctx != NULL &&
		  crypto.EVP_KDF_derive(ctx, key, MMC_KEY_BYTES, params) == 1;
	if (ctx != NULL)
		crypto.EVP_KDF_CTX_free(ctx);
	if (kdf != NULL)
		crypto.EVP_KDF_free(kdf);
	if (derived)
		return 0;
	mmc_error_set("libcrypto cannot derive a key: it has no HKDF");
	return -MMC_ENODEV;
}

const struct mmc_primitive mmc_libcrypto = {
	.name = "AES-128-GCM of libcrypto",
	.nonce_bytes = 12,
	.derive = mmc_libcrypto_derive,
	.open_cipher = open_cipher,
	.close_cipher = close_cipher,
	.seal = seal,
	.open = open_text,
};
