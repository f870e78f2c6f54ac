/* SPDX-License-Identifier: BSD-3-Clause */
/* What every fuzzer needs: the declaration of its entry, and where asserts end. */
#ifndef MMC_TESTS_FUZZ_H
#define MMC_TESTS_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/types.h"
#include "support/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

__attribute__((weak)) _Noreturn void
mmc_assert_failed(const char *expression, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, expression);
	abort();
}

#endif
