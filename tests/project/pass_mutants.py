#!/usr/bin/env python3
"""Leaves out one compiler pass after the other: each time a test of the compiler must fail.

Usage: pass_mutants.py PROGRAM...   where each PROGRAM is a built test of passes (unit_compile_test)."""
import os
import subprocess
import sys

# Without fuse, schedule or lower there are no steps at all; their absence is noticed by every test.
PASSES = ["decompose", "patches", "space_to_depth", "subsample", "pieces", "simplify", "maxima", "share", "fold",
          "join", "prune", "layout", "reorder", "fuse", "recompute", "pair", "epilogues", "place",
          "prologues", "schedule", "lower", "rematerialise", "updates", "positions", "dropout_bits",
          "gradient_sums", "masks", "column_sums", "stages", "hoist", "samples", "bundle"]


def all_pass(programs, **variables) -> bool:
    environment = dict(os.environ, **variables)
    return all(subprocess.run([program], env=environment, capture_output=True, timeout=120).returncode == 0
               for program in programs)


def main() -> int:
    programs = sys.argv[1:]
    if not all_pass(programs):
        print("the tests fail with all passes in place")
        return 1
    survivors = []
    for name in PASSES:
        survives = all_pass(programs, RUSSET_TEST_WITHOUT_PASS=name)
        print(f"without {name}: {'survives' if survives else 'noticed'}")
        if survives:
            survivors.append(name)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
