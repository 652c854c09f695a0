// SPDX-License-Identifier: BSD-3-Clause
// Asks that what has just happened be kept.

#include <kutrace.hpp>

int main() {
    return kutrace_keep("C++") <= 0;
}
