/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kutrace.h for C++17: fields of more types, and async spans that end with their
 * object.
 *
 *	KUTRACE_SPAN("find", "path", path);     // path is a std::string
 *	auto upload = KUTRACE_ASYNC_SPAN("upload", id, "size", bytes);
 *	std::thread([upload = std::move(upload)] { ... });
 */
#ifndef KUTRACE_HPP
#define KUTRACE_HPP

#include <kutrace.h>

#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

inline void kutrace_add(kutrace_fields *fields, std::string_view text)
{
	char copy[8 * 15 + 1];
	const size_t bytes = text.size() < sizeof(copy) ? text.size() : sizeof(copy) - 1;

	std::memcpy(copy, text.data(), bytes);
	copy[bytes] = 0;
	kutrace_add_text(fields, copy);
}

template <typename E> std::enable_if_t<std::is_enum_v<E>> kutrace_add(kutrace_fields *fields, E value)
{
	kutrace_add(fields, static_cast<std::underlying_type_t<E>>(value));
}

namespace kutrace {

/* The program is at something as long as this lives, in whichever thread that ends. */
class async_span {
public:
	/* Where its start was recorded, if it was, and its number. */
	struct begun {
		kutrace_site *site;
		uint64_t id;
	};

	async_span() noexcept : begin{nullptr, 0} {}
	explicit async_span(begun begin) noexcept : begin(begin) {}
	async_span(async_span &&other) noexcept : begin(std::exchange(other.begin, begun{nullptr, 0})) {}
	async_span &operator=(async_span &&other) noexcept
	{
		std::swap(begin, other.begin);
		return *this;
	}
	~async_span()
	{
#ifndef KUTRACE_OFF
		if (begin.site)
			kutrace_site_async_end(begin.site, begin.id);
#endif
	}

private:
	begun begin;
};

} // namespace kutrace

#define KUTRACE_ASYNC_SPAN(name, number, ...)                                 \
	kutrace::async_span(__extension__({                                   \
		kutrace::async_span::begun kutrace_begun = {nullptr, number}; \
		if (KUTRACE_IF_ON(KUTRACE_HERE(name, __VA_ARGS__) KUTRACE_VALUES(__VA_ARGS__) \
				  kutrace_begun.site = &kutrace_here;         \
				  kutrace_site_async_begin(&kutrace_here, kutrace_begun.id, \
							   &kutrace_values);) == 0) \
			kutrace_begun.site = nullptr;                         \
		kutrace_begun;                                                \
	}))

#endif /* KUTRACE_HPP */
