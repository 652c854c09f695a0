// SPDX-License-Identifier: BSD-3-Clause
// The interface of the original KUtrace's library, for programs written for it: the same names and meanings on top of
// kutrace.h, which new programs use. docs/compat.md lists what differs.
#ifndef KUTRACE_LIB_H
#define KUTRACE_LIB_H

#include "basetypes.h"

typedef uint32 u32;
typedef uint64 u64;
typedef int64 s64;

// A list of names ends with a null name.
typedef struct {
  int number;
  const char* name;
} NumNamePair;

// Commands of DoControl, system call 1023. Those that control the trace or read it answer -1.
enum {
  KUTRACE_CMD_OFF = 0,
  KUTRACE_CMD_ON = 1,
  KUTRACE_CMD_FLUSH = 2,
  KUTRACE_CMD_RESET = 3,
  KUTRACE_CMD_STAT = 4,
  KUTRACE_CMD_GETCOUNT = 5,
  KUTRACE_CMD_GETWORD = 6,
  KUTRACE_CMD_INSERT1 = 7,
  KUTRACE_CMD_INSERTN = 8,
  KUTRACE_CMD_GETIPCWORD = 9,
  KUTRACE_CMD_TEST = 10,
  KUTRACE_CMD_VERSION = 11,
};

// What addname names.
enum {
  KUTRACE_METHODNAME = 0x003,
  KUTRACE_LOCKNAME = 0x007,
  KUTRACE_QUEUE_NAME = 0x105,
  KUTRACE_RES_NAME = 0x106,
};

// What addevent records.
enum {
  KUTRACE_RPCIDREQ = 0x201,
  KUTRACE_RPCIDRESP = 0x202,
  KUTRACE_RPCIDMID = 0x203,
  KUTRACE_MARKA = 0x20a,
  KUTRACE_MARKB = 0x20b,
  KUTRACE_MARKC = 0x20c,
  KUTRACE_MARKD = 0x20d,
  KUTRACE_LOCKNOACQUIRE = 0x210,
  KUTRACE_LOCKACQUIRE = 0x211,
  KUTRACE_LOCKWAKEUP = 0x212,
  KUTRACE_RX_USER = 0x216,
  KUTRACE_TX_USER = 0x217,
  KUTRACE_RESOURCE = 0x219,
  KUTRACE_ENQUEUE = 0x21a,
  KUTRACE_DEQUEUE = 0x21b,
};

namespace kutrace {
// Whether a recorder is loaded; says so on standard error if none is.
bool test();
bool TestModule();
// Whether a trace is being recorded.
bool DoTest();

// Start a trace, by kutrace_control. The name is not needed: it names all threads by itself.
void go(const char* process_name);
void goipc(const char* process_name);
// Stops the trace, writes it to a file, and ends the program.
void stop(const char* fname);

// Labels of up to six characters, and a number of 32 bits.
void mark_a(const char* label);
void mark_b(const char* label);
void mark_c(const char* label);
void mark_d(u64 n);

// Records an event with an argument of 32 bits: 1, 0 if nothing is traced, or -1 if no recorder is loaded or it is none
// of a program's events.
u64 addevent(u64 eventnum, u64 arg);
u64 DoEvent(u64 eventnum, u64 arg);
void DoMark(u64 n, u64 arg);
// Names a number, in up to 55 bytes.
void addname(u64 eventnum, u64 number, const char* name);
void EmitNames(const NumNamePair* ipair, u64 n);

void msleep(int msec);
// Counts of the time stamp counter, 64 cycles each.
int64 readtime();
// Microseconds since 1970.
u64 GetUsec();

// str has 8 bytes; the first letter becomes a capital.
const char* Base40ToChar(u64 base40, char* str);
u64 CharToBase40(const char* str);
// name_DATE_TIME_host_pid.trace, without name's folder; str has 256 bytes.
const char* MakeTraceFileName(const char* name, char* str);

// System call 1023: its value, or -1.
u64 DoControl(u64 command, u64 arg);

// The steps of go and stop, by kutrace_control. Flags are 1 for instructions per cycle, 2 to wrap, 4 for cache misses.
void DoReset(u64 control_flags);
void DoInit(const char* process_name);
bool DoOn();
bool DoOff();
void DoFlush();
void DoDump(const char* fname);
void DoStat(u64 control_flags);
void DoQuit();
}  // namespace kutrace

#endif
