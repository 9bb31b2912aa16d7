#!/usr/bin/env python3
"""Leaves out one compiler pass after the other: each time a test of the compiler must fail.

Usage: pass_mutants.py PROGRAM   where PROGRAM is the built unit_compile_test."""
import os
import subprocess
import sys

# Without fuse, schedule or lower there are no steps at all; their absence is noticed by every test.
PASSES = ["decompose", "simplify", "share", "prune", "layout", "fuse", "recompute", "pair", "epilogues", "prologues",
          "schedule", "lower", "rematerialise", "stages", "bundle"]


def main() -> int:
    program = sys.argv[1]
    if subprocess.run([program], capture_output=True).returncode != 0:
        print("the tests fail with all passes in place")
        return 1
    survivors = []
    for name in PASSES:
        environment = dict(os.environ, RUSSET_TEST_WITHOUT_PASS=name)
        run = subprocess.run([program], env=environment, capture_output=True, timeout=120)
        verdict = "survives" if run.returncode == 0 else "noticed"
        print(f"without {name}: {verdict}")
        if run.returncode == 0:
            survivors.append(name)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
