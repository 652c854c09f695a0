// SPDX-License-Identifier: BSD-3-Clause
// A guest of KVM that is one virtual CPU and a few bytes of code: ROUNDS times it writes to a port and asks for CPUID,
// which both leave the guest, then it halts HALTS times. At the end what KVM counted of the CPU is printed, NAME=NUMBER.
//
//     vcpu ROUNDS HALTS
#include <err.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

// Of headers that are older than the kernel.
#ifndef KVM_GET_STATS_FD
#define KVM_GET_STATS_FD _IO(KVMIO, 0xce)
struct kvm_stats_header {
	uint32_t flags, name_size, num_desc, id_offset, desc_offset, data_offset;
};
struct kvm_stats_desc {
	uint32_t flags;
	int16_t exponent;
	uint16_t size;
	uint32_t offset, bucket_size;
	char name[];
};
#endif

enum { AT = 0x1000, PORT = 0x10 };

// Real mode. The count is patched in.
static const uint8_t code[] = {
	0x66, 0xbe, 0, 0, 0, 0,	// mov esi, ROUNDS
	0xe6, PORT,		// again: out PORT, al
	0x66, 0x31, 0xc0,	// xor eax, eax
	0x0f, 0xa2,		// cpuid
	0x66, 0x4e,		// dec esi
	0x75, 0xf5,		// jnz again
	0xf4,			// halt: hlt
	0xeb, 0xfd,		// jmp halt
};

static int check(int result, const char *what)
{
	if (result < 0)
		err(1, "%s", what);
	return result;
}

static void print_counts(int vcpu)
{
	int fd = check(ioctl(vcpu, KVM_GET_STATS_FD, NULL), "KVM_GET_STATS_FD");
	struct kvm_stats_header head;

	check(pread(fd, &head, sizeof(head), 0), "stats");
	for (uint32_t n = 0; n < head.num_desc; n++) {
		size_t bytes = sizeof(struct kvm_stats_desc) + head.name_size;
		struct kvm_stats_desc *desc = calloc(1, bytes);
		uint64_t value = 0;

		check(pread(fd, desc, bytes, head.desc_offset + n * bytes), "stats");
		if (desc->size == 1) {
			check(pread(fd, &value, sizeof(value), head.data_offset + desc->offset), "stats");
			printf("%s=%llu\n", desc->name, (unsigned long long)value);
		}
		free(desc);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		errx(2, "vcpu ROUNDS HALTS");
	uint32_t rounds = strtoul(argv[1], NULL, 0), halts = strtoul(argv[2], NULL, 0), ports = 0;
	int kvm = check(open("/dev/kvm", O_RDWR), "/dev/kvm");
	int vm = check(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
	uint8_t *memory = mmap(NULL, AT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		err(1, "memory");
	memcpy(memory, code, sizeof(code));
	memcpy(memory + 2, &rounds, sizeof(rounds));

	struct kvm_userspace_memory_region region = {
		.guest_phys_addr = AT, .memory_size = AT, .userspace_addr = (uintptr_t)memory,
	};
	check(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");

	int vcpu = check(ioctl(vm, KVM_CREATE_VCPU, 0), "KVM_CREATE_VCPU");
	size_t bytes = check(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");
	struct kvm_run *run = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
	struct kvm_sregs sregs;
	struct kvm_regs regs = { .rip = AT, .rflags = 2 };

	if (run == MAP_FAILED)
		err(1, "vcpu");
	check(ioctl(vcpu, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	check(ioctl(vcpu, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	check(ioctl(vcpu, KVM_SET_REGS, &regs), "KVM_SET_REGS");

	for (uint32_t halted = 0; halted < halts;) {
		check(ioctl(vcpu, KVM_RUN, 0), "KVM_RUN");
		if (run->exit_reason == KVM_EXIT_IO && run->io.port == PORT)
			ports++;
		else if (run->exit_reason == KVM_EXIT_HLT)
			halted++;
		else
			errx(1, "exit %u", run->exit_reason);
	}
	if (ports != rounds)
		errx(1, "%u writes to the port, not %u", ports, rounds);
	print_counts(vcpu);
	return 0;
}
