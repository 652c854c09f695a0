// SPDX-License-Identifier: BSD-3-Clause
// Spans, fields and a span that another thread ends, in C++.
//
// g++ -std=c++17 service.cc $(pkg-config --cflags --libs kutrace) -o service
// kutrace_control go; ./service; kutrace_control stop t.trace

#include <kutrace.hpp>

#include <string>
#include <thread>

static bool handle(const std::string &path)
{
	KUTRACE_SPAN("cpp.handle");
	{
		KUTRACE_SPAN("cpp.find", "path", path, "cached", false);
		KUTRACE_COUNTER("cpp.queued", -3);
	}
	return KUTRACE_MARK("cpp.reply", "status", 200, "ratio", 0.5, "path", path);
}

int main()
{
	bool replied = handle("/index");
	auto upload = KUTRACE_ASYNC_SPAN("cpp.upload", 7, "size", 4096u);
	std::thread([upload = std::move(upload)]() mutable { auto done = std::move(upload); }).join();
	KUTRACE_LOG("disk full");
	// While nothing is traced, nothing is recorded, and the program does the same.
	return replied != (kutrace_is_on() != 0);
}
