// SPDX-License-Identifier: BSD-3-Clause
// Runs a command while two programs of BPF record every system call and its return, in as little as BPF can without
// losing records: time and number into a ring buffer, without waking a reader. The reference of
// `cargo xtask bench others`.

#define _GNU_SOURCE
#include <err.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RING = 1 << 26, RECORD = 16 };

static int bpf(int command, union bpf_attr *how) {
    int got = syscall(SYS_bpf, command, how, sizeof *how);
    if (got < 0) {
        err(1, "bpf %d", command);
    }
    return got;
}

static void attach(const char *tracepoint, int ring) {
    const struct bpf_insn words[] = {
        // r6 = the call's number, the tracepoint's second argument
        { .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 6, .src_reg = 1, .off = 8 },
        // r7 = bpf_ringbuf_reserve(ring, RECORD, 0); return if there is no room
        { .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = ring },
        { 0 },
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = RECORD },
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 0 },
        { .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ringbuf_reserve },
        { .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .imm = 0, .off = 7 },
        { .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 7, .src_reg = 0 },
        // the record: time, number
        { .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ktime_get_ns },
        { .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 7, .src_reg = 0, .off = 0 },
        { .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 7, .src_reg = 6, .off = 8 },
        { .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 7 },
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = BPF_RB_NO_WAKEUP },
        { .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ringbuf_submit },
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
        { .code = BPF_JMP | BPF_EXIT },
    };
    union bpf_attr program = {
        .prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
        .insns = (uintptr_t)words,
        .insn_cnt = sizeof words / sizeof words[0],
        .license = (uintptr_t) "Dual BSD/GPL",
    };
    union bpf_attr link = { .raw_tracepoint = { .name = (uintptr_t)tracepoint } };
    link.raw_tracepoint.prog_fd = bpf(BPF_PROG_LOAD, &program);
    bpf(BPF_RAW_TRACEPOINT_OPEN, &link);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        errx(2, "usage: pair CMD...");
    }
    union bpf_attr map = { .map_type = BPF_MAP_TYPE_RINGBUF, .max_entries = RING };
    int ring = bpf(BPF_MAP_CREATE, &map);
    attach("sys_enter", ring);
    attach("sys_exit", ring);
    pid_t child = fork();
    if (child == 0) {
        execv(argv[1], argv + 1);
        err(1, "%s", argv[1]);
    }
    int status;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status);
}
