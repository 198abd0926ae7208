// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* TPCP on an end host: DPCP's program, with chains of three, whose places the checksum tells. */
#define VCP
#define DPCP
#define TPCP
#include "host.bpf.c"
