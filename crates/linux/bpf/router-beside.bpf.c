// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* XCP beside all other traffic at a router's output port: XCP's program, with a class of HTB for each. */
#define BESIDE
#define LAW_H "beside.h"
#include "router.bpf.c"
