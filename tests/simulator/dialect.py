#!/usr/bin/env python3
"""The dialect's check refuses every kernel of refused/ and takes those of accepted/ : dialect.py CHECK_DIALECT.

Then each place of an accepted kernel that names an address space is changed to another one; all mutants are refused.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SPACES = ["device", "threadgroup", "thread"]


def refused(check, paths):
    """The files among `paths` that the check complains about; None if there is no compiler."""
    run = subprocess.run([sys.executable, check, *map(str, paths)], capture_output=True, text=True)
    if run.returncode == 77:
        return None
    return {path for path in paths if f"{path}: " in run.stdout}


def mutants(text):
    for found in re.finditer(r"\b(device|threadgroup|thread)\b(?=[\w ]*[*&])", text):
        for space in SPACES:
            if space != found.group(1):
                yield text[:found.start()] + space + text[found.end():]


def main():
    check = sys.argv[1]
    bad = sorted((HERE / "refused").glob("*.metal"))
    good = sorted((HERE / "accepted").glob("*.metal"))
    caught = refused(check, bad)
    if caught is None:
        print("no clang")
        return 77
    failures = [f"{path.name} was taken" for path in bad if path not in caught]
    failures += [f"{path.name} was refused" for path in refused(check, good)]
    with tempfile.TemporaryDirectory() as folder:
        changed = []
        for path in good:
            for i, text in enumerate(mutants(path.read_text())):
                changed.append(pathlib.Path(folder) / f"{path.stem}-{i}.metal")
                changed[-1].write_text(text)
        survivors = set(changed) - refused(check, changed)
        failures += [f"a mutant was taken:\n{path.read_text()}" for path in sorted(survivors)]
    for failure in failures:
        print(failure)
    print(f"dialect: {len(bad)} refused, {len(good)} accepted, {len(changed)} mutants, {len(failures)} failures")
    return 1 if failures or not bad or not good or not changed else 0


if __name__ == "__main__":
    sys.exit(main())
