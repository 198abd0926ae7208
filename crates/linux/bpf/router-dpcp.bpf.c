// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* DPCP at a router's output port: the same program, with chains of two packets. */
#define DPCP
#include "router-vcp.bpf.c"
