/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <mpimcast/mmc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "offload/meeting.h"
#include "support/error.h"

/* The descriptor by which QEMU finds the memory. */
#define MEMORY_FD 3

static int fail(const char *what)
{
	mmc_error_set("the adapter's machine: %s: %s", what, strerror(errno));
	return -MMC_EIO;
}

int machine_create(struct machine *machine)
{
	void *memory;

	*machine = (struct machine){ .bell_fd = -1, .words_fd = -1 };
	machine->memory_fd = mmc_meeting_create(MACHINE_BYTES, &memory);
	if (machine->memory_fd < 0)
		return fail("no memory");
	machine->memory = memory;
	machine->nic = (void *)(machine->memory + MACHINE_PROGRAM_BYTES);
	return 0;
}

/* Becomes QEMU, in the child process. */
static void become_qemu(int memory_fd, int bells, int words, const char *image,
			uint32_t nharts)
{
	char backend[128];
	char mbytes[16];
	char harts[32];
	char *const arguments[] = {
		"qemu-system-riscv64",
		"-machine",
		"virt,memory-backend=ram",
		"-object",
		backend,
		"-m",
		mbytes,
		"-smp",
		harts,
		"-bios",
		"none",
		"-display",
		"none",
		"-monitor",
		"none",
		"-serial",
		"stdio",
		"-kernel",
		(char *)(uintptr_t)image,
		NULL,
	};

	snprintf(backend, sizeof(backend),
		 "memory-backend-file,id=ram,size=%lluM,share=on,"
		 "mem-path=/proc/self/fd/%d",
		 (unsigned long long)(MACHINE_BYTES >> 20), MEMORY_FD);
	snprintf(mbytes, sizeof(mbytes), "%lluM",
		 (unsigned long long)(MACHINE_BYTES >> 20));
	/*
	 * QEMU 7.2 ignores fences if a machine can have only one hart. But the device shares
	 * memory with that hart, so the machine is declared to have room for a second one.
	 */
	snprintf(harts, sizeof(harts), "%u,maxcpus=%u", nharts,
		 nharts > 2 ? nharts : 2);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(bells, STDIN_FILENO) >= 0 && dup2(words, STDOUT_FILENO) >= 0 &&
	    (memory_fd == MEMORY_FD ? fcntl(MEMORY_FD, F_SETFD, 0)
				    : dup2(memory_fd, MEMORY_FD)) >= 0)
		execvp(arguments[0], arguments);
	_exit(127);
}

int machine_start(struct machine *machine, const char *image, uint32_t nharts)
{
	int bells[2];
	int words[2];

	if (pipe2(bells, O_CLOEXEC) != 0)
		return fail("pipe");
	if (pipe2(words, O_CLOEXEC) != 0) {
		close(bells[0]);
		close(bells[1]);
		return fail("pipe");
	}
	machine->pid = fork();
	if (machine->pid == 0)
		become_qemu(machine->memory_fd, bells[0], words[1], image,
			    nharts);
	close(bells[0]);
	close(words[1]);
	machine->bell_fd = bells[1];
	machine->words_fd = words[0];
	fcntl(machine->bell_fd, F_SETFL, O_NONBLOCK);
	fcntl(machine->words_fd, F_SETFL, O_NONBLOCK);
	return machine->pid > 0 ? 0 : fail("fork");
}

void machine_ring(const struct machine *machine)
{
	/* If the pipe is full, bytes wait in it that do as well. */
	(void)!write(machine->bell_fd, "", 1);
}

bool machine_listen(const struct machine *machine)
{
	char bytes[256];
	ssize_t nbytes;

	while ((nbytes = read(machine->words_fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < nbytes; i++)
			if (bytes[i] == '\n' ||
			    (bytes[i] >= ' ' && bytes[i] <= '~'))
				fputc(bytes[i], stderr);
	return nbytes < 0 && (errno == EAGAIN || errno == EINTR);
}

void machine_destroy(struct machine *machine)
{
	if (machine->pid > 0) {
		kill(machine->pid, SIGKILL);
		waitpid(machine->pid, NULL, 0);
	}
	if (machine->bell_fd >= 0)
		close(machine->bell_fd);
	if (machine->words_fd >= 0)
		close(machine->words_fd);
	if (machine->memory != NULL)
		munmap(machine->memory, MACHINE_BYTES);
	if (machine->memory_fd >= 0)
		close(machine->memory_fd);
}
