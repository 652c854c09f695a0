// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into QEMU: KVM has Hyper-V's interfaces, but QEMU 7.2 shows them by another name than Linux looks for, and
// does not know the one by which the TSC counts as reliable.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/kvm.h>
#include <stdarg.h>
#include <string.h>

#define VENDOR 0x40000000
#define FEATURES 0x40000003
#define ACCESS_TSC_INVARIANT (1u << 15)

int ioctl(int fd, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    int (*next)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
    if (request == KVM_SET_CPUID2) {
        struct kvm_cpuid2 *told = argument;
        for (unsigned n = 0; n < told->nent; n++) {
            struct kvm_cpuid_entry2 *entry = &told->entries[n];
            if (entry->function == VENDOR) {
                memcpy(&entry->ebx, "Microsoft Hv", 12);
            } else if (entry->function == FEATURES) {
                entry->eax |= ACCESS_TSC_INVARIANT;
            }
        }
    }
    return next(fd, request, argument);
}
