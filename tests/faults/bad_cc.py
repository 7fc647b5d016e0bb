#!/usr/bin/env python3
"""A C compiler that spoils some of the kernels of op conv_silu: those whose name holds a key of $FAULTS, a JSON object of name: kind.

The kernel that was asked for stays in the unit under another name; one of the asked name calls it and does what the kind says."""
import json
import os
import re
import signal
import subprocess
import sys
import time

RAGGED = 9  # rows of the check of two uneven sequences; the other check has one row

# Before the kernel's own work, and after it. n: floats in y.
BEFORE = {
    "crash": "*(volatile int *)0 = 1;",
    "abort": "abort();",
    "hang": "for (;;) __asm__ volatile(\"\");",
    "flood": "for (;;) { puts(\"{\\\"ok\\\":true,\\\"hash\\\":\\\"0\\\"}\"); fflush(stdout); }",
    "stopped": "raise(SIGSTOP);",
    "exits": "exit(0);",
    "deep": "deep(1);",
    "killed": "kill(getpid(), SIGKILL);",
    "kills-tune": "kill(getppid(), SIGKILL); pause();",
    "late-crash": f"if (a->step->n_rows > {RAGGED}) abort();",
}
AFTER = {
    "wrong": "y[n / 2] += 1;",
    "infinite": "y[0] = 1e38f * 10;",
    "wrong-second": "if (a->step->n_rows == 1) y[n - 1] += 1;",
    "wrong-ragged": f"if (a->step->n_rows == {RAGGED}) y[n - 1] += 1;",
    "unwritten": "memset(y + n - 1, 0xFF, 4);",
    "unstable": "static int calls; if (++calls % 7 == 0) y[0] *= 1.0000002f;",
    "before": "y[-1] = 7;",
    "behind": "y[n] = 7;",
    "input": "((f32 *)(unsigned long)a->u)[0] += 1;",
    "far": "for (long i = 1 << 20; i < 2 << 20; i += 4096) if (i % 8192) y[i] = 7;",
}
OUTSIDE = {"opening": "__attribute__((constructor)) static void opening(void) { raise(SIGSEGV); }"}

WRAPPER = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) int deep(int i) { volatile char room[4096]; room[i % 4096] = 1; return deep(i + 1) + room[0]; }
OUTSIDE
void NAME(const struct conv_silu_args *a, struct team *t)
{
    f32 *y = a->y;
    long n = (long)a->step->n_rows * CHANNELS;
    (void)y, (void)n;
    if (!t->part) { BEFORE }
    kernel(a, t);
    team_wait(t);
    if (!t->part) { AFTER }
}
"""


def spoil(path, name, kind):
    text = open(path).read()
    text, found = re.subn(rf"^void {name}\(", "static void kernel(", text, flags=re.M)
    assert found == 1
    words = {"OUTSIDE": OUTSIDE.get(kind, ""), "NAME": name, "CHANNELS": re.search(r"channels(\d+)", name).group(1),
             "BEFORE": BEFORE.get(kind, ""), "AFTER": AFTER.get(kind, "")}
    open(path, "w").write(text + re.sub("|".join(words), lambda m: words[m.group()], WRAPPER))


def main():
    unit = next((a for a in sys.argv[1:] if a.endswith(".c")), "")
    name = os.path.basename(unit)[:-2]
    faults = json.loads(os.environ.get("FAULTS", "{}")) if name.startswith("conv_silu") else {}
    kind = next((kind for part, kind in faults.items() if name.endswith(part)), None)
    if kind == "no-build":
        sys.exit(f"{unit}:1:1: error: this compiler does not like it")
    if kind == "compiler-crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "compiler-hang":
        time.sleep(1000)
    if kind:
        spoil(unit, name, kind)
    sys.exit(subprocess.call(["cc", *sys.argv[1:]]))


main()
