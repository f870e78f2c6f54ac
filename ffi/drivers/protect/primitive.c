/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/protect/primitive.h"

#include <pthread.h>

#include "drivers/protect/aegis.h"
#include "drivers/protect/answers.h"
#include "drivers/protect/libcrypto.h"
#include "support/error.h"

/* The libraries, in the order of `enum mmc_primitive_kind`. */
static const struct {
	const struct mmc_primitive *primitive;
	int (*open)(const char *library);
} libraries[MMC_PRIMITIVES] = {
	[MMC_PRIMITIVE_AEGIS] = { &mmc_aegis, mmc_aegis_open },
	[MMC_PRIMITIVE_AES] = { &mmc_libcrypto, mmc_libcrypto_open },
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool derives; /* libcrypto is open, and its HKDF is right */
static bool opened[MMC_PRIMITIVES];

/* Opens libcrypto, by which all keys are derived. */
static int open_derivation(const char *library)
{
	int rv;

	if (derives)
		return 0;
	rv = mmc_libcrypto_open(library);
	if (rv == 0 && !mmc_answers_derived()) {
		mmc_error_set("libcrypto derives wrong keys: its HKDF does not "
			      "give the answer of RFC 5869");
		rv = -MMC_ENODEV;
	}
	derives = rv == 0;
	return rv;
}

static int open_library(uint32_t kind, const char *library)
{
	bool is_libcrypto = kind == MMC_PRIMITIVE_AES;
	int rv = open_derivation(is_libcrypto ? library : "");

	if (rv == 0 && !is_libcrypto)
		rv = libraries[kind].open(library);
	if (rv != 0)
		return rv;
	if (!mmc_answers_are_right(libraries[kind].primitive,
				   (enum mmc_primitive_kind)kind)) {
		mmc_error_set("%s does not give the published answers",
			      libraries[kind].primitive->name);
		return -MMC_ENODEV;
	}
	opened[kind] = true;
	return 0;
}

int mmc_primitive_open(uint32_t kind, const char *library)
{
	int rv = 0;

	if (kind >= MMC_PRIMITIVES) {
		mmc_error_set("there is no primitive %u", kind);
		return -MMC_ENODEV;
	}
	pthread_mutex_lock(&mutex);
	if (!opened[kind])
		rv = open_library(kind, library);
	pthread_mutex_unlock(&mutex);
	return rv;
}

const char *mmc_primitive_name(uint32_t kind)
{
	return kind < MMC_PRIMITIVES ? libraries[kind].primitive->name : "";
}

const struct mmc_primitive *mmc_primitive_find(uint32_t kind)
{
	const struct mmc_primitive *found = NULL;

	pthread_mutex_lock(&mutex);
	if (kind < MMC_PRIMITIVES && opened[kind])
		found = libraries[kind].primitive;
	pthread_mutex_unlock(&mutex);
	return found;
}
