#!/usr/bin/env python3
"""Mutants of the hand-written kernels: each must make a test fail.

    kernel_mutants.py PROGRAM [--files tile,sort] [--at-least 0.95]

PROGRAM is the test program gpu_kernel_samples_test, which has a sample for each file of kernels. One at a time, each
barrier of each kernel file is deleted and has its flags swapped, each comparison with a bound is made one too wide or
one too narrow, and each initialisation is removed. Survivors are listed, and those that change nothing with the reason.
Mutants that do not compile are left out. Exits 1 if too few are caught.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "src/device/gpu/kernels"
# Functions of emitted kernels, which have tests of their own (gpu_math_test, gpu_group_fuzz_test) and no barriers.
LEFT_OUT = {"math", "random", "reduce"}
# Helpers that the samples of other files cover.
SAMPLES = {"element": ["indexing", "pool", "sort", "scan"], "source": ["contraction", "pool"],
           "attention_blocks": ["attention"], "attention_elements": ["attention"],
           "fragments": ["attention_fragments"], "attention_gradient_fragments": ["attention_fragments"],
           "contraction": ["contraction", "stem", "split_product", "stationary_product"]}

# Mutants that behave as the original does, and why: (file, what was there, part of the line).
EQUIVALENT = [
    ("tile", "< to <=", "k + DEPTH < range.end", "reads zeros beyond the end, which nothing uses"),
    ("tile", "< to <=", "j < ACROSS; ++j) {", "the columns end before: the round is left at once"),
    ("tile", ">= to >", "j * 8 >= columns", "adds up columns that nobody reads"),
    ("tile", "< to <=", "i < line_count", "writes a thread's own array one too far; what lies there is set later"),
    ("element", "> to >=", "axis-- > 1", "the loop takes the outermost axis too, and leaves position 0 of it"),
    ("element", "> to >=", "axes.rank > 0", "axes that are not there have stride 0"),
    ("sort", "< to <=", "a_position < b_position", "positions are never equal"),
    ("contraction", "< to <=", "k < end", "factors beyond the end are zeros"),
    ("split_product", ">= to >", "bits >= 0x0d800000u", "no sum of magnitudes is the bound itself"),
    ("split_product", "< to <=", "bits < 0x7f000000u", "no sum of magnitudes is the bound itself"),
    ("split_product", "< to <=", "slice < tile.end", "a slice beyond the end is zeros"),
    ("split_product", "not initialised", "LeftLoader left = {};", "start() sets what is read"),
    ("split_product", "not initialised", "RightLoader right = {};", "start() sets what is read"),
    ("contraction", ">= to >", "if (first_row + i >= end_row) continue;", "of no rows none is shown"),
    ("split_product", "< to <=", "k < tile.end", "factors beyond the end are zeros"),
    ("stem", "> to >=", "tap_sharers = tap_blocks > 2", "two sharers or four give the same sums"),
    ("stem", "< to <=", "first < uint(Shape::lines * Shape::pixels); first +=", "behind the last line nothing is brought"),
    ("stem", "< to <=", "first < count; first +=", "beyond the weight nothing is brought"),
    ("stem", "not initialised", "T elements[ahead] = {};", "all are set before they are stored"),
    ("stem", "not initialised", "numbers[at_once", "all are set before they are stored"),
    ("stem", "not initialised", "numbers[Shape::ahead", "all are set before they are stored"),
    ("stem", "< to <=", "i < 16u; ++i", "behind the fourth row none is there"),
    ("stem", "< to <=", "i < shows; ++i", "no column is that far on"),
    ("stem", "< to <=", "i < uint(Shape::columns) / 32u; ++i", "no column is that far on"),
    ("stem", "< to <=", "if (number < values.row_tiles) find_tile", "a tile behind the last is not brought"),
    ("stem", "< to <=", "uint coming = number < values.row_tiles", "the last tile is brought again"),
    ("stem", "< to <=", "if (coming < all_pixels)", "behind the last line nothing is brought"),
    ("stem", "< to <=", "live = pixel < tile.pixels", "of no pixels none is shown"),
    ("stem", "<= to <", "is_whole = first + 16u <= tile.pixels", "what is shown whole is shown as a part"),
    ("stem", "< to <=", "first < tile.pixels; first += stem_simdgroups", "of no pixels none is shown"),
    ("stem", "< to <=", "first < tile.pixels; first += stem_chunk", "a chunk beyond the end is zeros"),
    ("stem", "< to <=", "first + stem_chunk < tile.pixels", "nobody multiplies a chunk beyond the end"),
    ("stem", "< to <=", "turn < uint(Shape::pixel_sharers); ++turn", "no simdgroup has such a turn"),
    ("stem", "> to >=", "if (turn > 0) threadgroup_barrier", "a barrier more"),
    ("depthwise", ">= to >", "first >= 0 && first + COUNT", "pixels that are all inside are looked at one by one"),
    ("depthwise", "<= to <", "first + COUNT <= width", "pixels that are all inside are looked at one by one"),
    ("depthwise", "> to >=", "SLICES > 1", "of one slice nothing is added up"),
    ("small_product", "< to <=", "slice < depth", "a slice beyond the end is zeros"),
    ("scan", "< to <=", "first < values.length", "a round beyond the end stores nothing"),
    ("scan", "< to <=", "distance < THREADS", "adds nothing: no thread is that far on"),
    ("pool", "<= to <", "taps_at_once = taps", "of nine taps one is read at a time"),
    ("pool", "> to >=", "key > largest[lane]", "what takes its place is equal"),
    ("pool", "> to >=", "m-- > 0", "no tap reads before its window"),
    ("pool", "> to >=", "n-- > 0", "no tap reads before its window"),
    ("pool", "< to <=", "taps[to + Offset(lane)]", "reads a thread's own array one too far"),
    ("indexing", "< to <=", "k < elements_at_once", "reads or writes a thread's own array one too far"),
    ("indexing", "< to <=", "sums[k] = k < count", "reads an element of its own again"),
    ("indexing", "< to <=", "for (uint k = 0u; k < count; ++k)", "writes an element of its own again"),
    ("attention_fragments", "< to <=", "if (first < end) {",
     "a block beyond the end is zeros, and nobody multiplies it"),
    ("attention_fragments", "< to <=", "i + 1u < Blocks::stages", "brings a block that is brought again"),
    ("attention_fragments", "< to <=", "first < end; first +=", "a round beyond the end sees nothing"),
    ("attention_fragments", "<= to <", "last_column <= row);", "a block that is all seen is looked at one by one"),
    ("attention_fragments", "< to <=", "if (place.own < values.", "rows beyond the last one are nobody's"),
    ("attention_fragments", "< to <=", "k < 8u; ++k", "writes columns that come again, or lie beyond the last"),
    ("attention_fragments", "< to <=", "keeps[i] = true;", "writes a thread's own array one too far"),
    ("attention_fragments", "< to <=", "clear_fragment(rows.sums[j])", "clears what is set on the next line"),
    ("attention_fragments", "not initialised", "place = {};", "all of it is set next"),
    ("attention_gradients_at_once", "< to <=", "i < Squares::own", "a square too many is beyond the last"),
    ("attention_gradients_at_once", ">= to >", "square >= Squares::all", "beyond the last column nothing is written"),
    ("attention_gradients_at_once", "> to >=", "own + Blocks::own_rows >", "where all keys are there, none is cleared"),
    ("attention_gradients_at_once", "<= to <", "static_assert(", "sums take less than there is"),
    ("attention_gradients_at_once", "not initialised", "batch = {};", "all of it is set next"),
    ("attention_gradients_at_once", "< to <=", "i + 1u < Blocks::stages", "brings a block that is brought again"),
    ("attention_gradients_at_once", "not initialised", "KeyValueSums<Blocks> sums = {};", "all of it is cleared next"),
    ("attention_gradients_at_once", "< to <=", "from < Blocks::inner && first", "queries beyond the last add nothing"),
    ("attention_gradients_at_once", "< to <=", "(all + Blocks::threads", "the round has no vectors"),
    ("attention_gradients_at_once", "< to <=", "if (first + Blocks::inner", "brings zeros beyond the last query"),
    ("attention_gradients_at_once", "> to >=", "if (first > 0u)", "of queries beyond the last nothing is written"),
    ("attention_gradients_at_once", "> to >=", "if (values.rows > 0u)", "of queries beyond the last nothing is written"),
    ("warpgroup_product", "< to <=", "number < work.count()", "a tile beyond the last column shows nothing"),
    ("warpgroup_product", "<= to <", "is_whole =", "a whole strip is shown as one with an end"),
    ("sample_product", "< to <=", "from < Elements::count", "a round beyond the end brings nothing"),
    ("sample_product", "not initialised", "HeldElements<", "all are set before they are stored"),
    ("sample_product", "< to <=", "from < end; from += ahead", "a round beyond the end adds nothing"),
    ("sample_product", "< to <=", "uint(fours) < uint(most_ahead)", "as many rounds are as many ahead"),
    ("sample_product", "<= to <", "is_short =", "the row may lie in threadgroup memory, too"),
    ("sample_product", "< to <=", "first < Work::columns; first +=", "of no columns none is shown"),
    ("sample_product", "< to <=", "from < fours; from += ahead", "weights beyond the depth are not multiplied"),
    ("stationary_product", "< to <=", "tile < values.row_tiles", "of rows beyond the last nothing is shown"),
    ("attention_gradient_fragments", "< to <=", "first < query.rows",
     "a block beyond the end is zeros, and nobody multiplies it"),
    ("attention_gradient_fragments", "< to <=", "i + 1u < Blocks::stages", "brings a block that is brought again"),
    ("attention_gradient_fragments", "< to <=", "first < end; first +=", "a round beyond the end sees nothing"),
    ("attention_gradient_fragments", "< to <=", "first < values.rows; first +=", "a round beyond the end sees nothing"),
    ("attention_gradient_fragments", "<= to <", "from + Blocks::least <= place.own", "the block sees none of the keys"),
    ("attention_gradient_fragments", "< to <=", "if (place.own < values.", "rows beyond the last one are nobody's"),
    ("attention_gradient_fragments", "not initialised", "place = {};", "all of it is set next"),
    ("attention_gradient_fragments", "not initialised", "KeyValueSums<Blocks> sums = {};", "all of it is cleared next"),
    ("attention_blocks", "< to <=", "first < end", "a round beyond the end sees nothing"),
    ("attention_blocks", "< to <=", "first < values.rows", "a round beyond the end sees nothing"),
    ("attention", ">= to >", ">= dropout", "no random number is the share itself"),
]

BOUND = re.compile(r"(?<![<>=-])(<=|>=|<|>)(?![<>=])")
WIDER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def is_code(line):
    """Whether the line computes something, and is no comment or declaration of a template."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith(("//", "template", "typedef", "enum", "struct"))


def barriers(number, line):
    found = re.search(r"(threadgroup|simdgroup)_barrier\(mem_flags::(\w+)\);", line)
    if not found:
        return
    yield "barrier deleted", line.replace(found.group(0), "")
    other = "mem_device" if found.group(2) == "mem_threadgroup" else "mem_threadgroup"
    yield "flags swapped", line.replace(found.group(2), other)


def bounds(number, line):
    """Comparisons, but not the angles of template arguments, which have no spaces around them."""
    for found in re.finditer(r" (<=|>=|<|>) ", line):
        sign = found.group(1)
        yield f"{sign} to {WIDER[sign]}", line[: found.start()] + f" {WIDER[sign]} " + line[found.end() :]


def initialisations(number, line):
    found = re.match(r"^(\s*)((?:\w+(?:<[^>]*>)? )?[\w.\[\]>-]+) = [^=].*;$", line)
    if not found or "const " in line or "for (" in line:
        return
    words = found.group(2).split(" ")
    if len(words) == 2:
        yield "not initialised", f"{found.group(1)}{words[0]} {words[1]};"
    elif "[" in words[0]:
        yield "not stored", found.group(1)


def mutants(text):
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not is_code(line):
            continue
        for make in (barriers, bounds, initialisations):
            for what, mutated in make(number, line):
                yield number + 1, what, line.strip(), "\n".join(lines[:number] + [mutated] + lines[number + 1 :])


def run(program, sample, folder):
    """The status of the tests that `sample` lists, and what it printed. A mutant that never ends counts as caught."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if folder:
        environment["RUSSET_TEST_KERNELS"] = folder
    try:
        done = subprocess.run(
            [program, "--gtest_filter=" + ":".join(f"KernelSamples.{name}" for name in sample)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=120,
        )
    except subprocess.TimeoutExpired:
        return 1, "it never ends"
    return done.returncode, done.stdout


def all_files(program):
    """The files of kernels by name. One that nothing tests is an error."""
    listed = subprocess.run([program, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    names = sorted(path.stem for path in KERNELS.glob("*.metal") if path.stem not in LEFT_OUT)
    untested = [name for name in names if not set(SAMPLES.get(name, [name])) <= set(listed)]
    if untested:
        sys.exit(f"no sample of gpu_kernel_samples_test covers {', '.join(untested)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--files", default="", help="all by default")
    parser.add_argument("--kind", default="", help="only mutants whose description contains one of these")
    parser.add_argument("--at-least", type=float, default=0.95)
    arguments = parser.parse_args()
    caught, survivors, invalid, equivalent = 0, [], 0, 0
    files = arguments.files.split(",") if arguments.files else all_files(arguments.program)
    for name in files:
        text = (KERNELS / f"{name}.metal").read_text()
        sample = SAMPLES.get(name, [name])
        status, output = run(arguments.program, sample, None)
        if status != 0:
            print(f"{name}: the kernels fail without any mutant:\n{output[-2000:]}")
            return 1
        for line, what, original, mutated in mutants(text):
            if not any(kind in what for kind in arguments.kind.split(",")):
                continue
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / f"{name}.metal").write_text(mutated)
                status, output = run(arguments.program, sample, folder)
            if status == 0:
                reasons = [why for f, w, part, why in EQUIVALENT if name == f and what == w and part in original]
                if reasons:
                    equivalent += 1
                    print(f"changes nothing {name}.metal:{line}: {what}: {original}: {reasons[0]}", flush=True)
                    continue
                survivors.append(f"{name}.metal:{line}: {what}: {original}")
                print("survived", survivors[-1], flush=True)
            elif re.search(r"^.*: error: (?!.*uninitialized)", output, re.M):
                invalid += 1  # but for variables that may not be set: the simulator's compiler refuses them
            else:
                caught += 1
    total = caught + len(survivors)
    share = caught / total if total else 1.0
    print(f"{caught} of {total} mutants caught ({share:.1%}), {equivalent} that change nothing, {invalid} do not compile")
    return 0 if share >= arguments.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
