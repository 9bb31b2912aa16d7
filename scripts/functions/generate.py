#!/usr/bin/env python3
"""Writes what comes from the table of public functions.

Usage: generate.py TABLE_FOLDER OUTPUT_FOLDER
  OUTPUT_FOLDER/include/russet/functional/*.h   the public headers
  OUTPUT_FOLDER/methods.cpp                     Tensor's methods
  OUTPUT_FOLDER/function_table.cpp              every function for callers that know its name when they run (tests)
A file that would not change is left alone. --list prints the names of the files instead.
"""
import sys
from pathlib import Path

import calls
import headers
import table


def files_of(families):
    include = "include/russet/functional/"
    files = {include + "options.h": headers.option_types, include + "methods.inc": headers.method_declarations,
             "methods.cpp": headers.method_definitions, "function_table.cpp": calls.function_table}
    for family in families:
        files[f"{include}{family.name}.h"] = lambda all_of_them, own=family: headers.family_header(own, all_of_them)
    return files


def write(path, lines):
    text = "".join(f"{line}\n" for line in lines)
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(path.suffix + ".new")
    beside.write_text(text)
    beside.rename(path)


def main():
    families = table.read(sys.argv[1])
    output = Path(sys.argv[2])
    for name, lines_of in files_of(families).items():
        write(output / name, lines_of(families))


if __name__ == "__main__":
    try:
        main()
    except table.TableError as error:
        sys.exit(f"generate.py: {error}")
