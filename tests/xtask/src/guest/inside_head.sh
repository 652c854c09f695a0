#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Boots a guest of this guest and waits for the end of its CMD. init.sh describes how both talk.
cd /mnt/share/inside || exit 99
rm -f console out err report
