/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver's functions for contexts, pointers and memory. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#ifdef HIP
/* In HIP every thread has a current device, the first by default. */
static bool is_current(void)
{
	return true;
}
#else
/* The only context, and how often it was pushed on this thread's stack. */
static int context;
static __thread int npushed;

static bool is_current(void)
{
	return npushed > 0;
}
#endif

static int broken; /* the error that device_break() has set */

void device_break(int error)
{
	__atomic_store_n(&broken, error, __ATOMIC_SEQ_CST);
}

int judge(void)
{
	int error = __atomic_load_n(&broken, __ATOMIC_SEQ_CST);

	if (error != SUCCESS)
		return error;
	return is_current() ? SUCCESS : INVALID_CONTEXT;
}

/* ---- contexts and pointers ------------------------------------------------ */

#ifdef HIP
struct attributes {
	int type;
	int device;
	void *device_pointer;
	void *host_pointer;
	int is_managed;
	unsigned flags;
};

int hipRuntimeGetVersion(int *version)
{
	*version = 60232830;
	return SUCCESS;
}

int hipPointerGetAttributes(struct attributes *found, const void *address)
{
	const struct memory *memory = memory_find(address, 0);

	memset(found, 0, sizeof(*found));
	if (memory != NULL)
		found->type = memory->on_device ? 2 : 1;
	return SUCCESS;
}

int hipGetDevice(int *device)
{
	*device = 0;
	return SUCCESS;
}

int hipSetDevice(int device)
{
	return device == 0 ? SUCCESS : INVALID_VALUE;
}

int hipInit(unsigned flags)
{
	return flags == 0 ? SUCCESS : INVALID_VALUE;
}
#else
int cuPointerGetAttribute(void *data, int attribute, device_pointer address)
{
	const struct memory *memory =
		memory_find((void *)(uintptr_t)address, 0);
	unsigned value = 0;

	if (memory == NULL)
		return INVALID_VALUE;
	switch (attribute) {
	case 1: /* CU_POINTER_ATTRIBUTE_CONTEXT: a pool's memory has none */
		*(void **)data = memory->pooled ? NULL : &context;
		return SUCCESS;
	case 2: /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE: device or host */
		value = memory->on_device ? 2 : 1;
		break;
	case 8: /* CU_POINTER_ATTRIBUTE_IS_MANAGED */
	case 9: /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
		break;
	default:
		return INVALID_VALUE;
	}
	memcpy(data, &value, sizeof(value));
	return SUCCESS;
}

int cuInit(unsigned flags)
{
	return flags == 0 ? SUCCESS : INVALID_VALUE;
}

int cuDevicePrimaryCtxRetain(handle *retained, int device)
{
	*retained = &context;
	return device == 0 ? SUCCESS : INVALID_VALUE;
}

int cuCtxPushCurrent_v2(handle pushed)
{
	if (pushed != &context)
		return INVALID_CONTEXT;
	npushed++;
	return SUCCESS;
}

int cuCtxPopCurrent_v2(handle *popped)
{
	if (npushed == 0)
		return INVALID_CONTEXT;
	npushed--;
	*popped = &context;
	return SUCCESS;
}
#endif

#ifdef HIP
const char *hipGetErrorName(int error)
{
	return error == 700 ? "hipErrorIllegalAddress" : "hipErrorUnknown";
}
#else
int cuGetErrorName(int error, const char **name)
{
	*name = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
			     : "CUDA_ERROR_UNKNOWN";
	return SUCCESS;
}
#endif

/* ---- memory --------------------------------------------------------------- */

static int allocate(void **address, size_t nbytes, bool on_device)
{
	const struct memory *memory;
	int error = judge();

	if (error != SUCCESS)
		return error;
	memory = memory_create(nbytes, on_device);
	if (memory == NULL)
		return OUT_OF_MEMORY;
	*address = memory->begin;
	return SUCCESS;
}

static int release(void *address)
{
	struct memory *memory = memory_find(address, 0);

	if (memory == NULL || memory->begin != address)
		return INVALID_VALUE;
	memory_destroy(memory);
	return SUCCESS;
}

int FUNCTION(cuMemAlloc_v2, hipMalloc)(device_pointer *address, size_t nbytes)
{
	return allocate((void **)address, nbytes, true);
}

#ifndef HIP
/* Allocates from a pool, at once: the stream does not matter here. */
int cuMemAllocAsync(device_pointer *address, size_t nbytes, handle stream)
{
	int error = cuMemAlloc_v2(address, nbytes);

	(void)stream;
	if (error == SUCCESS)
		memory_find((void *)(uintptr_t)*address, 0)->pooled = true;
	return error;
}
#endif

int FUNCTION(cuMemFree_v2, hipFree)(device_pointer address)
{
	return release((void *)(uintptr_t)address);
}

int FUNCTION(cuMemHostAlloc, hipHostMalloc)(void **address, size_t nbytes,
					    unsigned flags)
{
	(void)flags;
	return allocate(address, nbytes, false);
}

int FUNCTION(cuMemFreeHost, hipHostFree)(void *address)
{
	return release(address);
}
