// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ABC on an end host: VCP's program, with a law whose receivers count codes. */
#define VCP
#define MARKS "abc.h"
#define EXID 0x4142 /* AB */
#define NAME "abc"
#include "host.bpf.c"
