// SPDX-License-Identifier: BSD-3-Clause
// The original KUtrace's library on top of kutrace.h. Compile it with a program in the place of the original's file of
// the same name, and link with -lkutrace.

#include "kutrace_lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <string>
#include <vector>

#include "../include/kutrace.h"
#include "../include/kutrace_original.h"

namespace {
const long kSystemCall = 1023;
const u64 kOldestVersion = 3;
const int kMaxName = 55;

// Of the last DoReset.
u64 mode = 0;

// Runs kutrace_control, which is looked for on PATH, with arguments, or has it carry out words, one a line: the status
// that it ends with, 0 done, 1 failed, 2 not understood, 3 done but events were lost; it says on standard error why.
int Control(const std::string& words, std::vector<const char*> argv = {}) {
  // No pipe: it could end before it has read all, and this program by a signal then.
  int input = memfd_create("words", MFD_CLOEXEC);
  argv.insert(argv.begin(), "kutrace_control");
  argv.push_back(NULL);
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = 1;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  if (write(input, words.data(), words.size()) != (ssize_t)words.size() || lseek(input, 0, SEEK_SET) != 0 ||
      posix_spawnp(&child, argv[0], &actions, NULL, const_cast<char**>(argv.data()), environ) != 0) {
    fprintf(stderr, "kutrace: kutrace_control cannot be started\n");
  } else if (waitpid(child, &status, 0) == child) {
    status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  posix_spawn_file_actions_destroy(&actions);
  close(input);
  return status;
}
}  // namespace

namespace kutrace {

bool TestModule() {
  u64 version = DoControl(KUTRACE_CMD_VERSION, 0);
  bool found = kOldestVersion <= version && version <= 255;
  if (!found) fprintf(stderr, "kutrace: no recorder is loaded\n");
  return found;
}

bool test() { return TestModule(); }
bool DoTest() { return TestModule() && kutrace_is_on(); }

static void Start(u64 control_flags, const char* process_name) {
  DoReset(control_flags);
  DoInit(process_name);
  DoOn();
}

void go(const char* process_name) { Start(0, process_name); }
void goipc(const char* process_name) { Start(1, process_name); }

void stop(const char* fname) {
  DoDump(fname);
  DoQuit();
}

void mark_a(const char* label) { kutrace_mark_a(label); }
void mark_b(const char* label) { kutrace_mark_b(label); }
void mark_c(const char* label) { kutrace_mark_c(label); }
void mark_d(u64 n) { kutrace_mark_d(n); }

u64 addevent(u64 eventnum, u64 arg) { return DoEvent(eventnum, arg); }

// Always a system call: its answer tells a trace that is off from a recorder that is not there.
u64 DoEvent(u64 eventnum, u64 arg) {
  return DoControl(KUTRACE_CMD_INSERT1, (eventnum & 0xfff) << 32 | (arg & 0xffffffff));
}

void DoMark(u64 n, u64 arg) { kutrace_addevent(n, arg); }

void addname(u64 eventnum, u64 number, const char* name) {
  char cut[kMaxName + 1] = "";
  strncat(cut, name, kMaxName);
  kutrace_addname(eventnum, number, cut);
}

void EmitNames(const NumNamePair* ipair, u64 n) {
  for (; ipair->name; ++ipair) kutrace_addname(n, ipair->number, ipair->name);
}

void msleep(int msec) {
  struct timespec time = {msec / 1000, msec % 1000 * 1000000L};
  nanosleep(&time, NULL);
}

int64 readtime() { return _rdtsc() >> 6; }

u64 GetUsec() {
  struct timeval now;
  gettimeofday(&now, NULL);
  return now.tv_sec * 1000000ul + now.tv_usec;
}

static const char kBase40[] = "\0abcdefghijklmnopqrstuvwxyz0123456789-./";

const char* Base40ToChar(u64 base40, char* str) {
  memset(str, 0, 8);
  bool capital = true;
  base40 &= 0xffffffff;
  for (char* at = str; base40 > 0; base40 /= 40, ++at) {
    *at = kBase40[base40 % 40];
    if (capital && 'a' <= *at && *at <= 'z') {
      *at -= 'a' - 'A';
      capital = false;
    }
  }
  return str;
}

u64 CharToBase40(const char* str) {
  u64 base40 = 0;
  for (int i = strnlen(str, 6) - 1; i >= 0; --i) {
    char c = 'A' <= str[i] && str[i] <= 'Z' ? str[i] + ('a' - 'A') : str[i];
    const void* found = memchr(kBase40 + 1, c, 39);
    base40 = base40 * 40 + (found ? (const char*)found - kBase40 : 38);
  }
  return base40;
}

const char* MakeTraceFileName(const char* name, char* str) {
  const char* slash = strrchr(name, '/');
  char when[32], host[64] = "";
  time_t now = time(NULL);
  strftime(when, sizeof(when), "%Y%m%d_%H%M%S", localtime(&now));
  gethostname(host, sizeof(host) - 1);
  snprintf(str, 256, "%s_%s_%s_%d.trace", slash ? slash + 1 : name, when, host, getpid());
  return str;
}

u64 DoControl(u64 command, u64 arg) { return syscall(kSystemCall, command, arg); }

void DoReset(u64 control_flags) {
  mode = control_flags;
  Control("off\nreset\n");
}

// kutrace_control gathers the names when it writes the trace.
void DoInit(const char* process_name) {}

bool DoOn() {
  char go[16];
  snprintf(go, sizeof(go), "go%s%s%s", mode & 1 ? "ipc" : "", mode & 4 ? "llc" : "", mode & 2 ? "wrap" : "");
  return Control(go) == 0;
}

bool DoOff() { return Control("off\n") == 0; }

// The recorder closes its blocks when it stops.
void DoFlush() {}

// A file of this name is replaced once the new one is whole.
void DoDump(const char* fname) {
  char part[4096];
  snprintf(part, sizeof(part), "%s.%d.part", fname, getpid());
  int status = Control("", {"stop", "--", part});
  bool written = status == 0 || status == 3;
  if (written && rename(part, fname)) perror(fname);
  if (written) Control("reset\n");
}

void DoStat(u64 control_flags) { Control("stat\n"); }

void DoQuit() {
  DoOff();
  exit(0);
}

}  // namespace kutrace
