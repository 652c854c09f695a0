/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kutrace.h for C++17: parts that end with their object, and fields by type.
 * Link with -lkutrace.
 *
 *	KUTRACE_PART("request");                // to the end of the block
 *	KUTRACE_PART_WITH("find\0spath", path); // with fields, as kutrace.h has them
 *	KUTRACE_EVENT_WITH("reply\0istatus\0spath", 200, path);
 *	kutrace::async_part upload(KUTRACE_SITE("upload"), 7); // may be moved to another thread
 *
 * While nothing is traced, each is a load and a branch at its start and at its end.
 */
#ifndef KUTRACE_HPP
#define KUTRACE_HPP

#include <kutrace.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

/* The word that is asked is of each file: what asks it may not be shared between files. */
#define KUTRACE_IN_PLACE __attribute__((always_inline)) inline

namespace kutrace {

/* Adds a value to fields: a number, a bool, or a text. */
template <typename T> void add(kutrace_fields &fields, const T &value)
{
	if constexpr (std::is_floating_point_v<T>) {
		double number = value;
		uint64_t word;
		std::memcpy(&word, &number, sizeof(word));
		kutrace_fields_word(&fields, word);
	} else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
		kutrace_fields_word(&fields, static_cast<uint64_t>(value));
	} else if constexpr (std::is_convertible_v<const T &, const char *>) {
		kutrace_fields_text(&fields, value);
	} else {
		kutrace_fields_text(&fields, std::string(value).c_str());
	}
}

template <typename... T> kutrace_fields fields(const T &...values)
{
	kutrace_fields all = KUTRACE_FIELDS;
	(add(all, values), ...);
	return all;
}

/* This thread is in a part of the program as long as this lives. */
class part {
public:
	KUTRACE_IN_PLACE explicit part(kutrace_site *site) : site(site)
	{
		(void)KUTRACE_IF_ON(kutrace_site_begin(site));
	}
	template <typename... T>
	KUTRACE_IN_PLACE part(kutrace_site *site, const T &...values) : site(site)
	{
		if (!kutrace_may_be_on() || !kutrace_is_on())
			return;
		const kutrace_fields all = fields(values...);
		kutrace_site_begin_with(site, &all);
	}
	KUTRACE_IN_PLACE ~part() { (void)KUTRACE_IF_ON(kutrace_site_end(site)); }
	part(const part &) = delete;
	part &operator=(const part &) = delete;

private:
	kutrace_site *site;
};

/* A part of the program from here to its end, in whatever thread that is. */
class async_part {
public:
	template <typename... T>
	KUTRACE_IN_PLACE async_part(kutrace_site *site, uint64_t id, const T &...values)
		: site(site), id(id)
	{
		if (!kutrace_may_be_on() || !kutrace_is_on())
			return;
		const kutrace_fields all = fields(values...);
		kutrace_site_async_begin(site, id, &all);
	}
	async_part(async_part &&other) noexcept : site(std::exchange(other.site, nullptr)), id(other.id) {}
	async_part &operator=(async_part &&other) noexcept
	{
		std::swap(site, other.site);
		std::swap(id, other.id);
		return *this;
	}
	KUTRACE_IN_PLACE ~async_part()
	{
		if (site)
			(void)KUTRACE_IF_ON(kutrace_site_async_end(site, id));
	}

private:
	kutrace_site *site;
	uint64_t id;
};

template <typename... T>
KUTRACE_IN_PLACE bool event(kutrace_site *site, const T &...values)
{
	if (!kutrace_may_be_on() || !kutrace_is_on())
		return false;
	const kutrace_fields all = fields(values...);
	return kutrace_site_event(site, &all) > 0;
}

} // namespace kutrace

#define KUTRACE_PART(name) kutrace::part KUTRACE_SPAN_NAME(__LINE__)(KUTRACE_SITE(name))
#define KUTRACE_PART_WITH(name, ...)                                          \
	kutrace::part KUTRACE_SPAN_NAME(__LINE__)(KUTRACE_SITE(name), __VA_ARGS__)
#define KUTRACE_EVENT_WITH(name, ...) kutrace::event(KUTRACE_SITE(name), __VA_ARGS__)

#endif /* KUTRACE_HPP */
