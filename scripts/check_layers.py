#!/usr/bin/env python3
"""Checks who includes whom and how long files are; prints each violation, exit status 1 if there is one.

- A folder of src/ includes its own files and folders that stand above it in LAYERS.
- PUBLIC_USERS, apps/ and examples/ see the library as its users do: <russet/...> and their own files.
- Public headers include public headers alone.
- A device is known by its registration: nothing includes "device/X/..." but src/device/X.
- No source file is longer than MAX_LINES.
"""
import pathlib
import re
import sys

LAYERS = ["base", "ops", "graph", "autograd", "functional", "compile", "runtime", "device"]
PUBLIC_USERS = ["nn", "optim", "data", "text", "models", "io", "train"]
LIBRARIES = ["hwy"]  # whose own convention is to be included in quotes
MAX_LINES = 700
FOLDERS = ["include", "src", "apps", "tests", "bench", "examples", "scripts", "cmake"]
SUFFIXES = {".h", ".cpp", ".py", ".sh", ".cmake"}
QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
ANGLED = re.compile(r'^\s*#\s*include\s*<((?:%s)/[^>]+)>' % "|".join(LAYERS + PUBLIC_USERS), re.MULTILINE)


def may_include(parts, target, beside):
    """None, or why the file at `parts` may not include "target"; `beside`: the target lies beside the file."""
    if parts[0] == "include":
        return "a public header includes public headers alone, as <russet/...>"
    if parts[0] != "src":
        private = target[0] in LAYERS + PUBLIC_USERS and not beside
        return f"{parts[0]} knows <russet/...> alone" if private and parts[0] in ("apps", "examples") else None
    if beside or target[0] in LIBRARIES:
        return None
    folder = parts[1]
    if target[0] == "device" and parts[:3] != ("src", "device", target[1]):
        return "a device is known by its registration alone"
    if folder == target[0]:
        return None
    if folder in PUBLIC_USERS:
        return f"{folder} knows <russet/...> alone"
    if folder not in LAYERS:
        return f"src/{folder} has no place in the order of layers"
    if target[0] not in LAYERS or LAYERS.index(target[0]) > LAYERS.index(folder):
        return f"{target[0]} does not stand above {folder}"
    return None


def violations_of(root, path):
    relative = path.relative_to(root)
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.count("\n")
    if lines > MAX_LINES:
        yield f"{relative}: {lines} lines; {MAX_LINES} at most: is it one room, or two behind one door?"
    if path.suffix not in (".h", ".cpp"):
        return
    for name in QUOTED.findall(text) + ANGLED.findall(text):
        beside = (path.parent / name).exists()
        reason = may_include(relative.parts, pathlib.PurePosixPath(name).parts, beside)
        if reason:
            yield f'{relative}: includes "{name}": {reason}'


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]).resolve()
    paths = sorted(p for folder in FOLDERS for p in (root / folder).rglob("*") if p.suffix in SUFFIXES)
    found = [violation for path in paths for violation in violations_of(root, path)]
    for violation in found:
        print(violation)
    print(f"layers: {len(paths)} files, {len(found)} violations")
    return 1 if found or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
