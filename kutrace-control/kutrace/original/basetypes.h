// SPDX-License-Identifier: BSD-3-Clause
// The names of integer types that programs written for the original KUtrace use.
#ifndef KUTRACE_BASETYPES_H
#define KUTRACE_BASETYPES_H

#include <stdint.h>

typedef int8_t int8;
typedef int16_t int16;
typedef int32_t int32;
typedef int64_t int64;
typedef uint8_t uint8;
typedef uint16_t uint16;
typedef uint32_t uint32;
typedef uint64_t uint64;

#endif
