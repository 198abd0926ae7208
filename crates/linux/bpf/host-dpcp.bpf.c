// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* DPCP on an end host: VCP's program, with a law that tells a load in two packets. */
#define VCP
#define DPCP
#include "host.bpf.c"
