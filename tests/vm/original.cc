// SPDX-License-Identifier: BSD-3-Clause
// A program written for the original KUtrace's library. It traces itself: `original FILE`.

#include "basetypes.h"
#include "kutrace_lib.h"

static void Work() {
  for (volatile int i = 0; i < 100000; ++i) {
  }
}

int main(int argc, const char** argv) {
  if (!kutrace::test()) return 1;
  if (kutrace::addevent(KUTRACE_MARKD, 1) != 0) return 2;
  kutrace::go(argv[0]);
  if (!kutrace::DoTest()) return 3;

  kutrace::mark_a("book");
  kutrace::mark_b("Two");
  kutrace::mark_c("c_c");
  kutrace::mark_d(0x100000007);
  kutrace::addname(KUTRACE_METHODNAME, 4253, "get");
  if (kutrace::addevent(KUTRACE_RPCIDREQ, 65 << 16 | 4253) != 1) return 4;
  Work();
  kutrace::addevent(KUTRACE_RPCIDREQ, 0);
  kutrace::addname(KUTRACE_LOCKNAME, 99, "mutex");
  kutrace::addevent(KUTRACE_LOCKNOACQUIRE, 99);
  Work();
  kutrace::addevent(KUTRACE_LOCKACQUIRE, 99);
  Work();
  kutrace::addevent(KUTRACE_LOCKWAKEUP, 99);
  if ((s64)kutrace::addevent(0x200, 1) >= 0) return 5;

  char text[8], name[256];
  u64 label = kutrace::CharToBase40("/hello");
  kutrace::DoEvent(KUTRACE_MARKA, label);
  if (label != 1567496359 || kutrace::Base40ToChar(label, text)[1] != 'H') return 6;
  if (kutrace::MakeTraceFileName("/bin/original", name)[0] != 'o') return 7;
  int64 before = kutrace::readtime();
  u64 usec = kutrace::GetUsec();
  kutrace::msleep(2);
  if (kutrace::readtime() <= before || kutrace::GetUsec() < usec + 2000) return 8;

  kutrace::stop(argv[1]);
  return 9;  // stop does not return.
}
