#!/usr/bin/env python3
"""dlopen_test.py LIBRARY: the library can be loaded into a running program, as Python's extension modules are."""
import ctypes
import os
import subprocess
import sys

# Programs that load many such libraries have hardly any room for variables of threads that lie at fixed places.
FLAGS = subprocess.run(["readelf", "-Wd", sys.argv[1]], check=True, capture_output=True, text=True).stdout
if "STATIC_TLS" in FLAGS:
    sys.exit(f"{sys.argv[1]} wants its variables of threads at fixed places (STATIC_TLS)")
ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_NOW)
print("loaded")
