/*
 * A library that is loaded into User-Mode Linux before others, on processors with tile registers (AMX).
 *
 * The guest's kernel writes the extended registers of its processes by PTRACE_SETREGSET, 2,696 bytes of them,
 * for it knows no others. The host refuses less than all there are, which with tiles are 11,008 bytes. So what
 * the kernel writes is completed with what the process has in the registers behind.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Not on the stack: the kernel's stacks are small. It has one thread that calls here. */
static unsigned char whole[1 << 16];

static long set_registers(long pid, long kind, struct iovec *part)
{
	struct iovec all = { whole, sizeof(whole) };

	if (kind != NT_X86_XSTATE ||
	    syscall(SYS_ptrace, PTRACE_GETREGSET, pid, kind, &all) != 0 ||
	    part->iov_len >= all.iov_len)
		return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, kind, part);
	memcpy(whole, part->iov_base, part->iov_len);
	return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, kind, &all);
}

/* As that of glibc: what a request to read gives is the result, not a place (ptrace(2), "C library differences"). */
long ptrace(enum __ptrace_request request, ...)
{
	va_list rest;
	long pid, address, data, result, word;

	va_start(rest, request);
	pid = va_arg(rest, pid_t);
	address = va_arg(rest, long);
	data = va_arg(rest, long);
	va_end(rest);
	if (request == PTRACE_SETREGSET)
		return set_registers(pid, address, (struct iovec *)data);
	if (request != PTRACE_PEEKTEXT && request != PTRACE_PEEKDATA && request != PTRACE_PEEKUSER)
		return syscall(SYS_ptrace, request, pid, address, data);
	result = syscall(SYS_ptrace, request, pid, address, &word);
	if (result != 0)
		return result;
	errno = 0;
	return word;
}
