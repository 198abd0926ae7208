// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* VCP at a router's output port: the same program, with another law and another place for what it says. */
#define VCP
#include "router.bpf.c"
