#!/usr/bin/env python3
"""bundle_test.py BUILD: what `make bundle` packs runs elsewhere with the libraries that it brings."""
import os
import pathlib
import subprocess
import sys
import tempfile

source = pathlib.Path(__file__).resolve().parents[2]
environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}


def output_of(*command, **variables):
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    archive = pathlib.Path(folder, "bundle.tar.xz")
    output_of(str(source / "scripts/bundle.sh"), str(archive), BUILD=sys.argv[1])
    output_of("tar", "-C", folder, "-xf", str(archive))
    root = pathlib.Path(folder, "russet")
    run = str(root / "run")
    if "cpu" not in output_of(run, "bin/russet", "devices"):
        sys.exit("the command line knows no cpu")
    for test in ("conformance_conversions_test", "golden_schedules_test"):
        output_of(run, f"tests/{test}")
    helper = root / "lib/russet/compile-for-cuda"
    if helper.exists() and "russet starts this program" not in subprocess.run(
            [run, "lib/russet/compile-for-cuda"], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True).stderr:
        sys.exit("the compile helper does not start")
    # Nothing but the C library comes from elsewhere.
    for line in output_of("ldd", str(root / "bin/russet"), LD_LIBRARY_PATH=str(root / "lib")).splitlines():
        name, _, path = line.strip().partition(" => ")
        c_library = name.split(".so")[0] in ("libc", "libm", "libdl", "librt", "libpthread", "libresolv")
        if path and not c_library and not path.startswith(folder):
            sys.exit(f"{name} comes from {path}")
print("the bundle runs")
