/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry point that every fuzzer defines, and the headers that it needs. */
#ifndef MMC_TESTS_FUZZ_H
#define MMC_TESTS_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "core/types.h"
#include "support/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
