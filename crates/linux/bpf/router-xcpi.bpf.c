// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* XCP-i at a router's output port: XCP's program, and before its law what crosses clouds. */
#define XCPI
#include "router.bpf.c"
