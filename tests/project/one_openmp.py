#!/usr/bin/env python3
"""one_openmp.py LIBRARY: exactly one OpenMP runtime is loaded with russet, and it is GCC's.

Two runtimes in one process mean two pools of threads, and oneDNN is linked with libgomp.
"""
import re
import shutil
import subprocess
import sys

if shutil.which("ldd") is None:
    print("there is no ldd on this system to list a library's dependencies")
    sys.exit(77)
listing = subprocess.run(["ldd", sys.argv[1]], check=True, capture_output=True, text=True).stdout
runtimes = sorted(set(re.findall(r"^\s*(lib(?:gomp|omp|iomp)\d*\.so\S*)", listing, re.MULTILINE)))
print("OpenMP runtimes:", ", ".join(runtimes) or "none")
missing = re.findall(r"^\s*(\S+) => not found", listing, re.MULTILINE)
if len(runtimes) != 1 or not runtimes[0].startswith("libgomp") or missing:
    print(listing)
    sys.exit(1)
