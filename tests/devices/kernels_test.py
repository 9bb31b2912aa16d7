#!/usr/bin/env python3
"""How many distinct kernels the tests of devices compile on the simulated GPU: no more than are allowed.

Usage: kernels_test.py MOST FILE...   where each FILE lists the names of the kernels that one test program compiled."""
import sys
from pathlib import Path


def main() -> int:
    most = int(sys.argv[1])
    kernels = set()
    for path in map(Path, sys.argv[2:]):
        names = path.read_text().split()
        if not names:
            print(f"{path}: no kernels")
            return 1
        print(f"{len(names):6} {path.stem}")
        kernels.update(names)
    stems = {}
    for name in kernels:
        stem = name.rsplit("_", 1)[0]
        stems[stem] = stems.get(stem, 0) + 1
    print(", ".join(f"{count} {stem}" for stem, count in sorted(stems.items(), key=lambda item: -item[1])))
    print(f"{len(kernels)} distinct kernels, {most} are allowed")
    return 0 if len(kernels) <= most else 1


if __name__ == "__main__":
    sys.exit(main())
