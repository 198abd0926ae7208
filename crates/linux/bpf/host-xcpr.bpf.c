// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* XCP-r on an end host: XCP's program, with receivers that keep their senders' windows, and an option more to tell them. */
#define XCPR
#include "host.bpf.c"
