/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements mmc_thread_unbind(), which chooses the CPUs of a thread. */
#include <mpimcast/mmc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The most CPUs that a Linux kernel can be configured for. */
#define CPUS_MAX 8192

struct cpus {
	cpu_set_t sets[CPUS_MAX / CPU_SETSIZE];
};

/* Returns the number in the file `name` of a CPU's topology in sysfs, or -1. */
static int topology(int cpu, const char *name)
{
	char path[96];
	FILE *file;
	int value;

	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
	file = fopen(path, "re");
	if (file == NULL)
		return -1;
	if (fscanf(file, "%d", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

/* Returns whether two CPUs are known to be threads of one core. */
static bool same_core(int a, int b)
{
	int core = topology(a, "core_id");

	return core >= 0 && core == topology(b, "core_id") &&
	       topology(a, "physical_package_id") ==
		       topology(b, "physical_package_id");
}

static bool is_one_core(const struct cpus *cpus)
{
	int first = -1;

	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!CPU_ISSET_S((size_t)cpu, sizeof(*cpus), cpus->sets))
			continue;
		if (first < 0)
			first = cpu;
		else if (!same_core(first, cpu))
			return false;
	}
	return true;
}

void mmc_thread_unbind(void)
{
	struct cpus cpus = { 0 };

	if (sched_getaffinity(0, sizeof(cpus), cpus.sets) != 0 ||
	    !is_one_core(&cpus))
		return;
	/* A mask of all CPUs: the kernel restricts it to the process's cpuset. */
	memset(&cpus, 0xff, sizeof(cpus));
	sched_setaffinity(0, sizeof(cpus), cpus.sets);
}
