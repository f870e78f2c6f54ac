/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for the driver of a device that this machine does not have, with the
 * functions and the types of the real ones. It knows one range of addresses, which the
 * test tells it.
 *
 * Built with one of CUDA, HIP (a version such as 5 or 6) or LEVEL_ZERO defined.
 */
#include <stdint.h>
#include <string.h>

enum kind { HOST = 1, DEVICE, MANAGED };

static struct {
	uintptr_t begin, end;
	enum kind kind;
} known;

/* Makes the `bytes` bytes from `begin` on known as memory of this kind. */
void learn(void *begin, uint64_t bytes, int kind)
{
	known.begin = (uintptr_t)begin;
	known.end = known.begin + bytes;
	known.kind = (enum kind)kind;
}

/* Returns 0 for an unknown address. */
static int kind_of(uintptr_t address)
{
	if (address < known.begin || address >= known.end)
		return 0;
	return (int)known.kind;
}

#ifdef CUDA
typedef int CUresult;
typedef int CUpointer_attribute;
typedef unsigned long long CUdeviceptr;

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
			       CUdeviceptr ptr)
{
	const int kind = kind_of((uintptr_t)ptr);
	unsigned value;

	if (kind == 0)
		return 1; /* CUDA_ERROR_INVALID_VALUE */
	switch (attribute) {
	case 2: /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE: _HOST or _DEVICE */
		value = kind == HOST ? 1 : 2;
		break;
	case 8: /* CU_POINTER_ATTRIBUTE_IS_MANAGED */
		value = kind == MANAGED;
		break;
	default:
		return 1;
	}
	memcpy(data, &value, sizeof(value));
	return 0;
}
#endif

#ifdef HIP
typedef int hipError_t;
typedef struct {
	int type;
	int device;
	void *devicePointer;
	void *hostPointer;
	int isManaged;
	unsigned allocationFlags;
} hipPointerAttribute_t;

hipError_t hipRuntimeGetVersion(int *runtimeVersion)
{
	*runtimeVersion = HIP * 10000000 + 32830;
	return 0;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes,
				   const void *ptr)
{
	const int kind = kind_of((uintptr_t)ptr);

	memset(attributes, 0, sizeof(*attributes));
	if (kind == 0)
		return HIP < 6 ? 1 : 0; /* hipErrorInvalidValue; unregistered */
	/* Before version 6, host was 0, device 1, and array 2. */
	attributes->type = (kind == HOST ? 1 : 2) - (HIP < 6);
	attributes->isManaged = kind == MANAGED;
	return 0;
}
#endif

#ifdef LEVEL_ZERO
typedef int ze_result_t;
typedef void *ze_handle_t;
typedef struct {
	int stype;
	const void *pNext;
	uint32_t flags;
} ze_context_desc_t;
typedef struct {
	int stype;
	void *pNext;
	int type;
	uint64_t id;
	uint64_t pageSize;
} ze_memory_allocation_properties_t;

static int driver, context;

ze_result_t zeDriverGet(uint32_t *pCount, ze_handle_t *phDrivers)
{
	if (phDrivers != NULL && *pCount > 0)
		phDrivers[0] = &driver;
	*pCount = 1;
	return 0;
}

ze_result_t zeContextCreate(ze_handle_t hDriver, const ze_context_desc_t *desc,
			    ze_handle_t *phContext)
{
	if (hDriver != &driver || desc->stype != 0xd)
		return 0x78000004; /* ZE_RESULT_ERROR_INVALID_ARGUMENT */
	*phContext = &context;
	return 0;
}

ze_result_t
zeMemGetAllocProperties(ze_handle_t hContext, const void *ptr,
			ze_memory_allocation_properties_t *properties,
			ze_handle_t *phDevice)
{
	(void)phDevice;
	if (hContext != &context || properties->stype != 0x17)
		return 0x78000004;
	/* 0 is unknown memory, 1 the host's, 2 the device's, 3 shared. */
	properties->type = kind_of((uintptr_t)ptr);
	return 0;
}
#endif
