/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seals and opens datagrams as fast as one core can. It is built as a shared library, and
 * loaded by Python: there a primitive may be in a module of Python's. See bench/protect.py.
 */
#include <time.h>

#include "drivers/protect/primitive.h"

#define BODY_BYTES_MAX 65536
#define HEADER_BYTES 16

enum {
	SEAL,
	OPEN,
};

static uint8_t body[BODY_BYTES_MAX];
static uint8_t sealed[BODY_BYTES_MAX];
static uint8_t opened[BODY_BYTES_MAX];

/* Returns this process's processor time. */
static double processor_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/*
 * Returns the bytes of bodies, of `nbytes` each, that a primitive seals (`act` 0) or opens
 * (1) in a second of processor time, with encryption or without; 0 if it cannot be used.
 */
double mmc_bench_seals(uint32_t kind, int encrypts, int act, uint32_t nbytes,
		       uint32_t count);

double mmc_bench_seals(uint32_t kind, int encrypts, int act, uint32_t nbytes,
		       uint32_t count)
{
	const struct mmc_primitive *primitive = mmc_primitive_find(kind);
	const uint8_t key[MMC_KEY_BYTES] = { 1 };
	const uint8_t header[HEADER_BYTES] = { 2 };
	uint8_t nonce[MMC_NONCE_BYTES_MAX] = { 3 };
	uint8_t tag[MMC_TAG_BYTES];
	struct mmc_text text = {
		.nonce = nonce,
		.header = header,
		.header_bytes = HEADER_BYTES,
		.body = body,
		.body_bytes = nbytes,
		.to = encrypts ? sealed : NULL,
	};
	void *sealing, *opening;
	uint32_t ngood = 0;
	double begin_s;
	double took_s;

	if (primitive == NULL || nbytes > BODY_BYTES_MAX ||
	    primitive->open_cipher(key, true, &sealing) != 0 ||
	    primitive->open_cipher(key, false, &opening) != 0)
		return 0;
	begin_s = processor_s();
	for (uint32_t i = 0; act == SEAL && i < count; i++)
		ngood += primitive->seal(sealing, &text, tag) == 0;
	if (act == OPEN && primitive->seal(sealing, &text, tag) == 0) {
		text.body = encrypts ? sealed : body;
		text.to = encrypts ? opened : NULL;
		begin_s = processor_s();
		for (uint32_t i = 0; i < count; i++)
			ngood += primitive->open(opening, &text, tag);
	}
	took_s = processor_s() - begin_s;
	primitive->close_cipher(sealing);
	primitive->close_cipher(opening);
	return ngood == count ? (double)count * nbytes / took_s : 0;
}
