#!/usr/bin/env python3
"""scripts/check_macho.py FOLDER|STUB... FILE...: checks Mach-O files for arm64 against stubs (*.tbd).

Each undefined symbol must be in the stub of the library that the linker says it comes from, or be exported by another of
the files; each symbol of a stub of ours must be needed. Prints sizes and counts; the exit status is 1 if something is wrong.
"""
import collections
import dataclasses
import pathlib
import re
import struct
import sys

# <mach-o/loader.h>, <mach-o/nlist.h>, <mach/machine.h>
MAGIC_64, CPU_ARM64 = 0xFEEDFACF, 0x0100000C
SYMTAB, ID_DYLIB = 0x2, 0xD
LOADS = {0xC, 0x80000018, 0x8000001F}  # LOAD, LOAD_WEAK and REEXPORT _DYLIB
STAB, PRIVATE, TYPE, EXTERNAL, UNDEFINED = 0xE0, 0x10, 0x0E, 0x01, 0x0


@dataclasses.dataclass
class Image:
    """What a Mach-O file is called, which libraries it loads, and its symbols."""

    name: str = ""
    libraries: list = dataclasses.field(default_factory=list)
    undefined: list = dataclasses.field(default_factory=list)  # (symbol, library)
    exports: set = dataclasses.field(default_factory=set)


def text_at(data, offset):
    return data[offset : data.index(b"\0", offset)].decode()


def read_image(path):
    data = path.read_bytes()
    magic, cpu, _, _, commands = struct.unpack_from("<5I", data)
    if magic != MAGIC_64 or cpu != CPU_ARM64:
        sys.exit(f"{path}: not a Mach-O file for arm64")
    image = Image(name=path.name)
    table = None
    offset = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", data, offset)
        if command in LOADS or command == ID_DYLIB:
            name = text_at(data, offset + struct.unpack_from("<I", data, offset + 8)[0])
            if command == ID_DYLIB:
                image.name = name
            else:
                image.libraries.append(name)
        elif command == SYMTAB:
            table = struct.unpack_from("<4I", data, offset + 8)
        offset += size
    symbols, count, strings, _ = table
    for index in range(count):
        name, kind, _, description, _ = struct.unpack_from("<IBBHQ", data, symbols + 16 * index)
        if kind & STAB or not kind & EXTERNAL:
            continue
        symbol = text_at(data, strings + name)
        if kind & TYPE != UNDEFINED:
            if not kind & PRIVATE:
                image.exports.add(symbol)
            continue
        ordinal = description >> 8
        known = 1 <= ordinal <= len(image.libraries)
        image.undefined.append((symbol, image.libraries[ordinal - 1] if known else f"ordinal {ordinal}"))
    return image


def read_stub(path):
    """(library, symbols): the first library of a stub, and what it and those it passes on export."""
    text = path.read_text()
    library = re.search(r"^install-name: *'?([^'\n]+)'?", text, re.MULTILINE).group(1)
    lists = re.findall(r"^ *(?:weak-|thread-local-)?symbols: *\[([^]]*)]", text, re.MULTILINE)
    return library, {symbol.strip(" '\n") for part in lists for symbol in part.split(",")}


def main():
    paths = []
    for path in map(pathlib.Path, sys.argv[1:]):
        paths += sorted(path.rglob("*.tbd")) if path.is_dir() else [path]
    stubs = dict(read_stub(path) for path in paths if path.suffix == ".tbd")
    files = [(path, read_image(path)) for path in paths if path.suffix != ".tbd"]
    ours = {path for path in stubs if "libSystem" not in path}
    exported = stubs | {image.name: image.exports for _, image in files}
    wrong, used = [], collections.defaultdict(set)
    for path, image in files:
        counts = collections.Counter(library for _, library in image.undefined)
        size = path.stat().st_size / 2**20
        print(f"{path.name}: {size:.1f} MiB, {len(image.undefined)} undefined symbols, {len(image.exports)} exported")
        for library, count in counts.most_common():
            print(f"  {count:5} from {library}")
        for library in image.libraries:
            if library not in exported:
                wrong.append(f"{path.name} loads {library}, which has no stub")
        for symbol, library in image.undefined:
            used[library].add(symbol)
            if symbol not in exported.get(library, ()):
                wrong.append(f"{path.name} needs {symbol} of {library}, which does not have it")
    wrong += [f"{library}: nothing needs {symbol}" for library in ours for symbol in sorted(stubs[library] - used[library])]
    print("\n".join(wrong) if wrong else "each undefined symbol is in a stub, and each symbol of a stub is needed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
