/* SPDX-License-Identifier: BSD-3-Clause */
/* Units of time in nanoseconds, which all clocks of the library count. */
#ifndef MMC_SUPPORT_TIME_H
#define MMC_SUPPORT_TIME_H

#include <stdint.h>

/* Stands in place of a time that never comes. */
#define MMC_NEVER_NS UINT64_MAX

#define MMC_US_NS UINT64_C(1000)
#define MMC_MS_NS UINT64_C(1000000)
#define MMC_S_NS UINT64_C(1000000000)

#endif
