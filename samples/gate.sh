#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Lets a build pass unless its requests have become slower by more than a tenth.
#
# Usage: gate.sh GOOD.trace NEW.trace [what a request is, and other options of kutrace_control diff]
# Status: 0 pass, 1 slower, 2 not known: a trace is bad, not whole, or has too few requests
#
# GOOD.trace is of the last build that passed, NEW.trace of this one, both recorded on this machine with the same load:
#   kutrace_control record -o NEW.trace -- ./load-test && gate.sh GOOD.trace NEW.trace --client load-test && mv NEW.trace GOOD.trace
set -u
[ $# -ge 2 ] || { sed -n 's/^# Usage: /usage: /p' "$0" >&2; exit 2; }

kutrace_control diff --fail-above 10% --top 3 "$@"
case $? in
0) echo "gate: pass" ;;
1) echo "gate: slower; see cause 1 above"; exit 1 ;;
3) echo "gate: not known: a trace is not whole, record again with more memory (-b)"; exit 2 ;;
*) echo "gate: not known: there is nothing to compare"; exit 2 ;;
esac
