// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prague on an end host: VCP's program, with a law whose receivers count codes. */
#define VCP
#define MARKS "prague.h"
#define EXID 0x5052 /* PR */
#define NAME "cprag"
#include "host.bpf.c"
