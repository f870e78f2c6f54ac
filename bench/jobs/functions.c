/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plugin of QEMU that counts the instructions of each function of a program, between the
 * calls of count_begins() and count_ends() in it. Its argument `functions` names a file with
 * a line for each function: its address, its length, both in hexadecimal, and its name. At
 * the end it writes a line to standard error for each function that has run. Declared here
 * is what it uses of the interface, version 1, since Debian has no header of it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
#define FUNCTIONS_MAX 4096
#define NAME_BYTES 64

struct qemu_plugin_tb;
struct qemu_plugin_insn;

void qemu_plugin_register_vcpu_tb_trans_cb(
	uint64_t plugin, void (*on_block)(uint64_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*on_run)(unsigned, void *),
					    int flags, void *data);
void qemu_plugin_register_atexit_cb(uint64_t plugin,
				    void (*on_exit)(uint64_t, void *),
				    void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

EXPORTED int qemu_plugin_version = 1;

struct function {
	uint64_t begin;
	uint64_t end;
	char name[NAME_BYTES];
	uint64_t count;
};

static struct function functions[FUNCTIONS_MAX];
static unsigned nfunctions;
static bool counts;

static void on_run(unsigned cpu, void *data)
{
	struct function *function = data;

	(void)cpu;
	if (strcmp(function->name, "count_begins") == 0)
		counts = true;
	else if (strcmp(function->name, "count_ends") == 0)
		counts = false;
	else
		function->count += counts;
}

/* Has the instructions of a block counted that lie in a function. */
static void on_block(uint64_t plugin, struct qemu_plugin_tb *block)
{
	(void)plugin;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
		struct qemu_plugin_insn *insn =
			qemu_plugin_tb_get_insn(block, i);
		uint64_t at = qemu_plugin_insn_vaddr(insn);

		/* Some of the compiler's own functions end in others. */
		for (unsigned f = 0; f < nfunctions; f++) {
			if (at < functions[f].begin || at >= functions[f].end)
				continue;
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_run, 0,
							       &functions[f]);
			break;
		}
	}
}

static void on_exit_of_program(uint64_t plugin, void *data)
{
	(void)plugin;
	(void)data;
	for (unsigned f = 0; f < nfunctions; f++)
		if (functions[f].count > 0)
			fprintf(stderr, "%s %llu\n", functions[f].name,
				(unsigned long long)functions[f].count);
}

static bool read_functions(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long long begin, nbytes;

	if (file == NULL)
		return false;
	while (nfunctions < FUNCTIONS_MAX &&
	       fscanf(file, "%llx %llx %63s", &begin, &nbytes,
		      functions[nfunctions].name) == 3) {
		functions[nfunctions].begin = begin;
		functions[nfunctions++].end = begin + nbytes;
	}
	fclose(file);
	return nfunctions > 0;
}

EXPORTED int qemu_plugin_install(uint64_t plugin, const void *info, int argc,
				 char **argv)
{
	static const char name[] = "functions=";

	(void)info;
	if (argc != 1 || strncmp(argv[0], name, strlen(name)) != 0 ||
	    !read_functions(argv[0] + strlen(name)))
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(plugin, on_block);
	qemu_plugin_register_atexit_cb(plugin, on_exit_of_program, NULL);
	return 0;
}
