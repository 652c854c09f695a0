// SPDX-License-Identifier: BSD-3-Clause
// Parts, fields and a part that another thread ends, in C++.
//
// g++ -std=c++17 service.cc -lkutrace -o service
// kutrace_control go; ./service; kutrace_control stop t.trace

#include <kutrace.hpp>

#include <string>
#include <thread>

static bool handle(const std::string &path)
{
	KUTRACE_PART("cpp.handle");
	{
		KUTRACE_PART_WITH("cpp.find\0spath\0bcached", path, false);
		KUTRACE_VALUE("cpp.queued", -3);
	}
	return KUTRACE_EVENT_WITH("cpp.reply\0istatus\0fratio\0spath", 200, 0.5, path);
}

int main()
{
	bool replied = handle("/index");
	kutrace::async_part upload(KUTRACE_SITE("cpp.upload\0usize"), 7, 4096u);
	std::thread([upload = std::move(upload)]() mutable { auto done = std::move(upload); }).join();
	KUTRACE_LOG("disk full");
	// While nothing is traced, nothing is recorded, and the program does the same.
	return replied != (kutrace_is_on() != 0);
}
