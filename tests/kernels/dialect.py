#!/usr/bin/env python3
"""Every kernel that models, primitives and random groups need keeps to the dialect: dialect.py PROGRAM CHECK_DIALECT.

PROGRAM is kernels_units_test, which writes the kernels' units; CHECK_DIALECT is scripts/check_dialect.py.
"""
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    program, check = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, RUSSET_TEST_UNITS=folder)
        subprocess.run([program, "--gtest_filter=Units.AreWritten"], env=environment, check=True)
        units = sorted(pathlib.Path(folder).glob("*.metal"))
        if not units:
            print("no units were written")
            return 1
        return subprocess.run([sys.executable, check, *map(str, units)]).returncode


if __name__ == "__main__":
    sys.exit(main())
