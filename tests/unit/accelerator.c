/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for the driver of a GPU, which this machine does not have: it has those
 * functions and types of the real driver by which mpimcast asks whose memory an address
 * is. It knows one range of addresses, which the test tells it by learn().
 *
 * Which driver it stands in for is defined when it is built: CUDA, HIP (as the version,
 * such as 5 or 6) or LEVEL_ZERO.
 */
#include <stdint.h>
#include <string.h>

enum kind { HOST = 1, DEVICE, MANAGED };

static struct {
	uintptr_t begin, end;
	enum kind kind;
} known;

/* Makes the `bytes` bytes from `begin` on the known range, as memory of this kind. */
void learn(void *begin, uint64_t bytes, int kind)
{
	known.begin = (uintptr_t)begin;
	known.end = known.begin + bytes;
	known.kind = (enum kind)kind;
}

/* Returns the kind of the memory at an address, or 0 if the address is not known. */
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
	case 2: /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
		/* CU_MEMORYTYPE_HOST or CU_MEMORYTYPE_DEVICE */
		value = kind == HOST ? 1 : 2;
		break;
	case 8: /* CU_POINTER_ATTRIBUTE_IS_MANAGED */
		value = kind == MANAGED;
		break;
	default:
		return 1; /* CUDA_ERROR_INVALID_VALUE */
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
	*runtimeVersion =
		HIP * 10000000 + 32830; /* the rest is a patch level */
	return 0;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes,
				   const void *ptr)
{
	const int kind = kind_of((uintptr_t)ptr);

	memset(attributes, 0, sizeof(*attributes));
	/*
	 * Unknown memory is hipErrorInvalidValue before version 6, and since then of the
	 * type 0, hipMemoryTypeUnregistered.
	 */
	if (kind == 0)
		return HIP < 6 ? 1 : 0;
	/* That type has moved the others up: host is 1 since, and device 2. */
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

enum {
	CONTEXT_DESC = 0xd, /* ZE_STRUCTURE_TYPE_CONTEXT_DESC */
	ALLOCATION_PROPERTIES =
		0x17, /* ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES */
	INVALID_ARGUMENT = 0x78000004, /* ZE_RESULT_ERROR_INVALID_ARGUMENT */
};

/* The only handles that there are. */
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
	if (hDriver != &driver || desc->stype != CONTEXT_DESC)
		return INVALID_ARGUMENT;
	*phContext = &context;
	return 0;
}

ze_result_t
zeMemGetAllocProperties(ze_handle_t hContext, const void *ptr,
			ze_memory_allocation_properties_t *properties,
			ze_handle_t *phDevice)
{
	(void)phDevice;
	if (hContext != &context || properties->stype != ALLOCATION_PROPERTIES)
		return INVALID_ARGUMENT;
	/* Level Zero numbers the kinds as `enum kind` does, and has 0 for unknown memory. */
	properties->type = kind_of((uintptr_t)ptr);
	return 0;
}
#endif
