// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* DCTCP on an end host: VCP's program, with a law whose receivers count codes. */
#define VCP
#define MARKS "dctcp.h"
#define EXID 0x4443 /* DC */
#define NAME "cdctcp"
#include "host.bpf.c"
