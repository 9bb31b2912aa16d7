#!/usr/bin/env python3
"""Each message that the metal driver sends is answered by the table of the simulator's objects.

messages_test.py HEADERS OBJECT...: metal-cpp keeps each selector in a variable, so the undefined symbols of the driver's
object files are the messages that it sends. Also: the table holds no message that neither the driver nor a test sends.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
TABLE = ROOT / "src/device/gpu/simulator/objects"
ROW = re.compile(r'\{"(\w+)",\s*"([\w:]+)",\s*(?:\{\d+, \d+\}|always)')
SELECTOR = re.compile(r'_(?:NS|MTL)_PRIVATE_DEF_SEL\((\w+),\s*"([^"]+)"\)')
SYMBOL = re.compile(r"U (?:NS|MTL)::Private::Selector::s_k(\w+)")


def main():
    headers, objects = pathlib.Path(sys.argv[1]), sys.argv[2:]
    names = {}
    for header in headers.rglob("*.hpp"):
        names.update(SELECTOR.findall(header.read_text(encoding="utf-8")))
    listing = subprocess.run(["nm", "-C", *objects], check=True, capture_output=True, text=True).stdout
    sent = {names[accessor] for accessor in SYMBOL.findall(listing)}
    answered = {message for path in TABLE.glob("*.cpp") for _, message in ROW.findall(path.read_text())}
    tests = "".join(path.read_text() for path in (ROOT / "tests/metal").glob("*.cpp"))

    failures = [f"the driver sends {message}, which the table lacks" for message in sorted(sent - answered)]
    failures += [f"nobody sends {message}: remove it from the table" for message in sorted(answered - sent)
                 if f'"{message}"' not in tests]
    for failure in failures:
        print(failure)
    print(f"messages: the driver sends {len(sent)}, the table answers {len(answered)}")
    return 1 if failures or len(sent) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
