#!/usr/bin/env python3
"""Writes src/device/gpu/cuda/proposals_table.cpp: which of a library's proposals was measured to be the fastest.

  scripts/proposals_table.py [--table FILE] LOG...

FILE: in place of that one. LOG: what russet wrote to standard error with RUSSET_PROPOSALS=measure
(docs/devices/cuda_kernels.md). Of a question that several lines tell of the mean counts; lines of the table that are
of other versions of a library or other GPUs stay."""
import argparse
import collections
import pathlib
import re

TABLE = pathlib.Path(__file__).resolve().parent.parent / "src/device/gpu/cuda/proposals_table.cpp"
LINE = re.compile(r"russet kernels: proposals of (\S+ \S+ \S+): (.*) \[([0-9. ]+) us\]$")
ENTRY = re.compile(r'    \{"([^"]*)", (\d+), "([^"]*)"\},$')
# What noise does not explain, and what is worth a line.
RATIO, MICROSECONDS = 0.97, 0.3
HEAD = '''// Written by scripts/proposals_table.py.
#include "device/gpu/cuda/proposals_table.h"

namespace russet::cuda {
namespace {

// clang-format off
constexpr MeasuredProposal table[] = {
'''
TAIL = '''};
// clang-format on

}  // namespace

std::span<const MeasuredProposal> measured_proposals() { return table; }

}  // namespace russet::cuda
'''


def measured(paths):
    """{(library, question): [times of a proposal, in microseconds, ...]}"""
    times = collections.defaultdict(list)
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            if match := LINE.match(line):
                times[match[1], match[2]].append([float(time) for time in match[3].split()])
    return {key: [sum(column) / len(lists) for column in zip(*lists)] for key, lists in times.items()}


def main(table, paths):
    times = measured(paths)
    libraries = {library for library, _ in times}
    entries = {}
    for line in table.read_text().splitlines():
        if (match := ENTRY.match(line)) and match[1] not in libraries:
            entries[match[1], match[3]] = int(match[2])
    before = after = 0
    for key, of_proposals in times.items():
        best = min(range(len(of_proposals)), key=of_proposals.__getitem__)
        gain = of_proposals[0] - of_proposals[best]
        if gain > MICROSECONDS and of_proposals[best] < RATIO * of_proposals[0]:
            entries[key] = best
            before += of_proposals[0]
            after += of_proposals[best]
    lines = [f'    {{"{library}", {best}, "{question}"}},\n' for (library, question), best in sorted(entries.items())]
    part = table.with_suffix(".part")
    part.write_text(HEAD + "".join(lines) + TAIL)
    part.replace(table)
    print(f"{len(entries)} entries; of {len(times)} questions that were measured the changed ones take {after:.0f} us"
          f" instead of {before:.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=pathlib.Path, default=TABLE)
    parser.add_argument("logs", nargs="+", metavar="LOG")
    arguments = parser.parse_args()
    main(arguments.table, arguments.logs)
