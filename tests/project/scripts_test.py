#!/usr/bin/env python3
"""The project's own scripts: each violation of a rule is found, each kind of result is counted."""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"


def run(script, *arguments):
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


class Layers(Tree):
    def check(self, path, text, message):
        self.write("src/base/shape.h", "#pragma once\n")
        self.write(path, text)
        answer = run("check_layers.py", self.root)
        self.assertEqual(answer.returncode, 1 if message else 0, answer.stdout)
        self.assertIn(message, answer.stdout)

    def test_what_stands_above_may_be_included(self):
        self.check("src/graph/a.cpp", '#include <russet/tensor.h>\n#include "base/shape.h"\n#include "graph/b.h"\n', "")

    def test_what_stands_below_may_not(self):
        self.check("src/base/a.cpp", '#include "graph/node.h"\n', "graph does not stand above base")

    def test_a_device_is_private(self):
        self.check("src/runtime/a.cpp", '#include "device/cpu/a.h"\n', "known by its registration")

    def test_devices_do_not_know_each_other(self):
        self.check("src/device/null/a.cpp", '#include "device/cpu/a.h"\n', "known by its registration")

    def test_a_device_knows_itself_and_what_stands_above(self):
        self.check("src/device/cpu/a.cpp", '#include "device/cpu/a.h"\n#include "runtime/device.h"\n', "")

    def test_nn_knows_the_public_api_alone(self):
        self.check("src/nn/a.cpp", '#include "base/shape.h"\n', "nn knows <russet/...> alone")

    def test_angle_brackets_do_not_hide_an_include(self):
        self.check("src/nn/a.cpp", "#include <graph/node.h>\n", "nn knows <russet/...> alone")

    def test_a_public_header_includes_public_headers(self):
        self.check("include/russet/a.h", '#include "base/shape.h"\n', "public headers alone")

    def test_an_application_knows_the_public_api_alone(self):
        self.check("apps/russet/a.cpp", '#include "graph/node.h"\n', "apps knows <russet/...> alone")

    def test_long_files_are_found(self):
        self.check("src/base/a.cpp", "\n" * 701, "701 lines")


class Summary(Tree):
    def summary(self, entries, **programs):
        self.write("ctest.xml", f"<testsuite>{entries}</testsuite>")
        for program, cases in programs.items():
            self.write(f"{program}.xml", f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
        answer = run("test_summary.py", self.root)
        return answer.returncode, answer.stdout

    def test_cases_of_programs_are_counted(self):
        status, text = self.summary(
            '<testcase name="unit/a" status="run"/>',
            unit_a='<testcase name="x" classname="A" status="run" result="completed"/>'
            '<testcase name="y" classname="A" status="run" result="skipped">'
            '<skipped message="a_test.cpp:3&#x0A;no data here"/></testcase>',
        )
        self.assertIn("skipped 1: no data here", text)
        self.assertTrue(text.endswith("1 passed, 0 failed, 1 skipped\n"), text)
        self.assertEqual(status, 0)

    def test_a_failed_case_fails(self):
        status, text = self.summary(
            '<testcase name="unit/a" status="fail"><failure message=""/></testcase>',
            unit_a='<testcase name="x" classname="A" status="run"><failure message="no"/></testcase>',
        )
        self.assertIn("failed: unit/a: A.x", text)
        self.assertTrue(text.endswith("0 passed, 1 failed, 0 skipped\n"), text)
        self.assertEqual(status, 1)

    def test_a_crash_fails(self):
        status, text = self.summary('<testcase name="unit/a" status="fail"><failure message=""/></testcase>')
        self.assertIn("0 passed, 1 failed, 0 skipped", text)
        self.assertEqual(status, 1)

    def test_a_crash_after_the_report_fails(self):
        status, text = self.summary(
            '<testcase name="unit/a" status="fail"><failure message=""/></testcase>',
            unit_a='<testcase name="x" classname="A" status="run"/>',
        )
        self.assertIn("1 passed, 1 failed, 0 skipped", text)
        self.assertEqual(status, 1)

    def test_no_test_at_all_fails(self):
        status, text = self.summary("")
        self.assertIn("0 passed, 0 failed, 0 skipped", text)
        self.assertEqual(status, 1)


class Selection(Tree):
    """Which tests scripts/test.sh runs of a build."""

    def ran(self, *arguments):
        self.write(
            "CTestTestfile.cmake",
            'add_test(unit/short "true")\nadd_test(kernels/long "true")\nadd_test(kernels/longer_name "true")\n'
            'set_tests_properties(kernels/long PROPERTIES LABELS "kernels;long")\n'
            'set_tests_properties(kernels/longer_name PROPERTIES LABELS "along")\n',
        )
        done = subprocess.run([SCRIPTS / "test.sh", self.root, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_long_ones_are_left_out(self):
        text = self.ran()
        self.assertIn("kernels/longer_name", text)
        self.assertTrue(text.endswith("2 passed, 0 failed, 0 skipped\n"), text)

    def test_all_are_all(self):
        self.assertTrue(self.ran("--all").endswith("3 passed, 0 failed, 0 skipped\n"))

    def test_options_are_passed_on(self):
        self.assertTrue(self.ran("--all", "--exclude-regex", "longer").endswith("2 passed, 0 failed, 0 skipped\n"))

    def test_a_name_finds_long_ones_too(self):
        self.assertTrue(self.ran("kernels").endswith("2 passed, 0 failed, 0 skipped\n"))
        self.assertTrue(self.ran("unit").endswith("1 passed, 0 failed, 0 skipped\n"))


@unittest.skipUnless(sys.platform == "linux", "they cross-compile on Linux")
class OtherSystems(Tree):
    """What scripts/macos.sh and scripts/aarch64.sh say where what they need cannot be had: programs that fail stand in the
    place of those that load it."""

    def run_without(self, script, programs, complaint="no network"):
        for program in programs:
            self.write(f"bin/{program}", f"#!/bin/sh\necho {complaint} >&2\nexit 1\n")
            (self.root / "bin" / program).chmod(0o755)
        environment = os.environ | {"PATH": f"{self.root}/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": str(self.root)}
        return subprocess.run([SCRIPTS / script], capture_output=True, text=True, check=False, env=environment)

    def check_left_out(self, answer, reason):
        self.assertEqual(answer.returncode, 77, answer.stdout + answer.stderr)
        self.assertIn(f"left out: {reason}", answer.stdout.splitlines()[-1])  # which the summary shows

    def make_metal_cpp(self):
        version = re.search("^mlx-metal==([0-9.]+)", (SCRIPTS / "metal_cpp.txt").read_text(), re.MULTILINE)[1]
        self.write(f"russet/metal-cpp-{version}/Metal/Metal.hpp", "")

    def test_macos_is_left_out_without_headers(self):
        self.check_left_out(self.run_without("macos.sh", ["python3"]), "the wheel that scripts/metal_cpp.txt names")

    def test_macos_is_left_out_without_its_compiler(self):
        self.make_metal_cpp()
        self.check_left_out(self.run_without("macos.sh", ["python3"]), "the wheel that scripts/zig.txt names")

    def test_macos_fails_with_another_compiler(self):
        self.make_metal_cpp()
        answer = self.run_without("macos.sh", ["python3"], "THESE PACKAGES DO NOT MATCH THE HASHES")
        self.assertEqual(answer.returncode, 2, answer.stdout + answer.stderr)

    def test_aarch64_is_left_out_without_packages(self):
        self.check_left_out(self.run_without("aarch64.sh", ["dpkg-query", "apt-get", "sudo"]), "")


@unittest.skipUnless(shutil.which("apt-get"), "packages are apt's")
class Setup(Tree):
    def test_nobody_is_asked_for_a_password_without_a_terminal(self):
        for program, text in {"dpkg-query": "exit 1", "id": "echo 1000", "sudo": 'echo "sudo $*"'}.items():
            self.write(f"bin/{program}", f"#!/bin/sh\n{text}\n")
            (self.root / "bin" / program).chmod(0o755)
        environment = os.environ | {"PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        answer = subprocess.run([SCRIPTS / "setup.sh", "data"], capture_output=True, text=True, check=False,
                                env=environment, stdin=subprocess.DEVNULL)
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
        self.assertIn("sudo -n apt-get update", answer.stdout)


class MachO(Tree):
    """What scripts/check_macho.py says of a Mach-O file that loads one library, and the library's stub."""

    LIBRARY = "/usr/lib/libz.1.dylib"

    def stub(self, *symbols):
        self.write("libz.tbd", f"--- !tapi-tbd\ninstall-name: '{self.LIBRARY}'\nexports:\n"
                   f"  - targets: [ arm64-macos ]\n    symbols: [ {', '.join(symbols)} ]\n...\n")

    def image(self, *undefined, cpu=0x0100000C, library=LIBRARY):
        name = library.encode() + b"\0" * (8 - len(library) % 8)
        load = struct.pack("<6I", 0xC, 24 + len(name), 24, 0, 0, 0) + name
        table, strings = b"", b"\0"
        for symbol in undefined:
            table += struct.pack("<IBBHQ", len(strings), 0x01, 0, 1 << 8, 0)
            strings += symbol.encode() + b"\0"
        start = 32 + len(load) + 24
        symtab = struct.pack("<6I", 0x2, 24, start, len(undefined), start + len(table), len(strings))
        header = struct.pack("<8I", 0xFEEDFACF, cpu, 0, 2, 2, len(load) + len(symtab), 0, 0)
        (self.root / "program").write_bytes(header + load + symtab + table + strings)

    def check(self, status, message):
        answer = run("check_macho.py", self.root / "libz.tbd", self.root / "program")
        self.assertEqual(answer.returncode, status, answer.stdout + answer.stderr)
        self.assertIn(message, answer.stdout + answer.stderr)

    def test_symbols_in_the_stub_are_counted(self):
        self.stub("_inflate", "_deflate")
        self.image("_inflate", "_deflate")
        self.check(0, f"2 from {self.LIBRARY}")

    def test_a_symbol_that_no_stub_has_is_found(self):
        self.stub("_inflate")
        self.image("_inflate", "_deflate")
        self.check(1, f"program needs _deflate of {self.LIBRARY}, which does not have it")

    def test_a_library_without_a_stub_is_found(self):
        self.stub("_inflate")
        self.image("_inflate", library="/usr/lib/libbz2.1.0.dylib")
        self.check(1, "program loads /usr/lib/libbz2.1.0.dylib, which has no stub")

    def test_a_symbol_that_nothing_needs_is_found(self):
        self.stub("_inflate", "_deflate")
        self.image("_inflate")
        self.check(1, f"{self.LIBRARY}: nothing needs _deflate")

    def test_another_processor_is_found(self):
        self.stub("_inflate")
        self.image("_inflate", cpu=0x01000007)
        self.check(1, "not a Mach-O file for arm64")


if __name__ == "__main__":
    unittest.main()
