/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/protect/aegis.h"

#include "drivers/protect/libcrypto.h"
#include "support/error.h"
#include "support/library.h"

/* The library's state of a MAC, which has no alignment of its own. */
struct mac_state {
	uint8_t opaque[384];
};

/* The functions that are used, as aegis128l.h declares them. */
#define FUNCTIONS(X)                                                           \
	X(int, aegis_init, (void))                                             \
	X(int, aegis128l_encrypt_detached,                                     \
	  (uint8_t *, uint8_t *, size_t, const uint8_t *, size_t,              \
	   const uint8_t *, size_t, const uint8_t *, const uint8_t *))         \
	X(int, aegis128l_decrypt_detached,                                     \
	  (uint8_t *, const uint8_t *, size_t, const uint8_t *, size_t,        \
	   const uint8_t *, size_t, const uint8_t *, const uint8_t *))         \
	X(void, aegis128l_mac_init,                                            \
	  (struct mac_state *, const uint8_t *, const uint8_t *))              \
	X(int, aegis128l_mac_update,                                           \
	  (struct mac_state *, const uint8_t *, size_t))                       \
	X(int, aegis128l_mac_final, (struct mac_state *, uint8_t *, size_t))   \
	X(int, aegis128l_mac_verify,                                           \
	  (struct mac_state *, const uint8_t *, size_t))

#define MEMBER(result, name, arguments) result(*name) arguments;
static struct {
	FUNCTIONS(MEMBER)
} aegis;

#define SYMBOL(result, name, arguments)                                        \
	{ #name, offsetof(__typeof__(aegis), name) },
static const struct mmc_library_symbol symbols[] = { FUNCTIONS(SYMBOL) };

int mmc_aegis_open(const char *library)
{
	int rv = mmc_library_open(library[0] == '\0' ? "libaegis.so" : library,
				  symbols, sizeof(symbols) / sizeof(symbols[0]),
				  &aegis);

	if (rv == 0 && aegis.aegis_init() != 0) {
		mmc_error_set("libaegis cannot be initialized");
		rv = -MMC_ENODEV;
	}
	return rv;
}

/* A cipher is the key itself: the library expands it for each text. */
static int open_cipher(const uint8_t *key, bool seals, void **cipher)
{
	(void)seals;
	*cipher = (void *)(uintptr_t)key;
	return 0;
}

static void close_cipher(void *cipher)
{
	(void)cipher;
}

/* Puts a text that is not encrypted into a MAC. Returns whether that is done. */
static bool authenticate(struct mac_state *state, const struct mmc_text *text,
			 const uint8_t *key)
{
	aegis.aegis128l_mac_init(state, key, text->nonce);
	return aegis.aegis128l_mac_update(state, text->header,
					  text->header_bytes) == 0 &&
	       aegis.aegis128l_mac_update(state, text->body,
					  text->body_bytes) == 0;
}

static int seal(void *cipher, const struct mmc_text *text, uint8_t *tag)
{
	struct mac_state state;
	bool sealed;

	if (text->to == NULL)
		sealed = authenticate(&state, text, cipher) &&
			 aegis.aegis128l_mac_final(&state, tag,
						   MMC_TAG_BYTES) == 0;
	else
		sealed = aegis.aegis128l_encrypt_detached(
				 text->to, tag, MMC_TAG_BYTES, text->body,
				 text->body_bytes, text->header,
				 text->header_bytes, text->nonce, cipher) == 0;
	if (sealed)
		return 0;
	mmc_error_set("libaegis cannot seal a datagram");
	return -MMC_EIO;
}

static bool open_text(void *cipher, const struct mmc_text *text,
		      const uint8_t *tag)
{
	struct mac_state state;

	if (text->to == NULL)
		return authenticate(&state, text, cipher) &&
		       aegis.aegis128l_mac_verify(&state, tag, MMC_TAG_BYTES) ==
			       0;
	return aegis.aegis128l_decrypt_detached(text->to, text->body,
						text->body_bytes, tag,
						MMC_TAG_BYTES, text->header,
						text->header_bytes, text->nonce,
						cipher) == 0;
}

const struct mmc_primitive mmc_aegis = {
	.name = "AEGIS-128L of libaegis",
	.nonce_bytes = 16,
	.derive = mmc_libcrypto_derive,
	.open_cipher = open_cipher,
	.close_cipher = close_cipher,
	.seal = seal,
	.open = open_text,
};
