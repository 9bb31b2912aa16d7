#!/usr/bin/env python3
"""Checks that kernels keep to the dialect (docs/devices/dialect.md), beyond what compiles on the simulated GPU.

    scripts/check_dialect.py FILE...

Each FILE is a whole unit, without a prelude. clang's front end for C++ in OpenCL reads it with address spaces kept, so a
pointer that changes its space is an error; then its syntax tree is searched for what the dialect does not allow.
RUSSET_DIALECT_CLANG names the compiler. Exit status 1 if a file is refused, 77 if there is no clang.
"""
import concurrent.futures
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

PRELUDE = pathlib.Path(__file__).parents[1] / "src/device/gpu/kernels/prelude/check.h"
# Without a generic address space: with it most errors of address spaces pass.
EXTENSIONS = "-__opencl_c_generic_address_space,-__opencl_c_pipes,-__opencl_c_device_enqueue"
FLAGS = ["-x", "clcpp", "-cl-std=clc++2021", "-Xclang", "-cl-ext=" + EXTENSIONS, "-target", "spir64", "-fsyntax-only",
         "-include", str(PRELUDE)]

FORBIDDEN = {
    "LambdaExpr": "a lambda",
    "GotoStmt": "goto",
    "IndirectGotoStmt": "goto",
    "LabelStmt": "a label",
    "CXXNewExpr": "new",
    "CXXDeleteExpr": "delete",
    "CXXThrowExpr": "throw",
    "CXXTryStmt": "try",
    "CXXDynamicCastExpr": "dynamic_cast",
    "CXXForRangeStmt": "a for loop over a range",
    "DecompositionDecl": "a structured binding",
    "CXXFoldExpr": "a fold expression",
    "ConceptDecl": "a concept",
}
TYPED = {"VarDecl", "ParmVarDecl", "FieldDecl", "FloatingLiteral", "CStyleCastExpr", "CXXStaticCastExpr",
         "CXXFunctionalCastExpr", "ImplicitCastExpr"}


def type_of(node):
    described = node.get("type", {})
    return described.get("desugaredQualType", described.get("qualType", ""))


class Search:
    """Walks a syntax tree and collects complaints and who calls whom."""

    def __init__(self):
        self.complaints = []
        self.calls = {}  # function -> functions that it calls, by id
        self.names = {}
        self.first = {}
        self.line = 0

    def complain(self, what):
        self.complaints.append(f"line {self.line}: {what}" if self.line else what)

    def place(self, node):
        # The dump says a line only where it differs from the one before.
        for key in ("loc", "range"):
            where = node.get(key, {})
            where = where.get("begin", where) if key == "range" else where
            where = where.get("expansionLoc", where)
            if "line" in where:
                self.line = where["line"]

    def visit(self, node, function, depth):
        kind = node.get("kind", "")
        self.place(node)
        if kind in FORBIDDEN:
            self.complain(FORBIDDEN[kind])
        if kind in TYPED and "double" in type_of(node).replace("*", " ").split():
            self.complain("double")
        if kind == "VarDecl":
            self.visit_variable(node, function)
        if kind == "CXXMethodDecl" and node.get("virtual"):
            self.complain("a virtual function")
        if kind in ("FunctionDecl", "CXXMethodDecl"):
            # All declarations of a function count as the first one.
            function = self.first.get(node.get("previousDecl"), node["id"])
            self.first[node["id"]] = function
            self.names[function] = node.get("name", "")
            self.calls.setdefault(function, set())
        callee = node.get("referencedDecl", {}) if kind == "DeclRefExpr" else {}
        if function and callee.get("kind") in ("FunctionDecl", "CXXMethodDecl"):
            self.calls[function].add(self.first.get(callee["id"], callee["id"]))
        if function and kind == "MemberExpr" and "referencedMemberDecl" in node:
            self.calls[function].add(node["referencedMemberDecl"])
        for child in node.get("inner", []):
            self.visit(child, function, depth + 1)

    def visit_variable(self, node, function):
        described = type_of(node)
        if node.get("storageClass") == "static":
            self.complain(f"static variable '{node.get('name')}'")
        elif not function and "__constant" not in described and not node.get("constexpr"):
            self.complain(f"global variable '{node.get('name')}' that is not constant")

    def find_recursion(self):
        done = set()

        def follow(function, path):
            if function in path:
                self.line = 0
                self.complain(f"recursion: {self.names.get(function)} calls itself")
                return
            if function in done:
                return
            for callee in self.calls.get(function, ()):
                follow(callee, path | {function})
            done.add(function)

        for function in list(self.calls):
            follow(function, frozenset())


def check(clang, path):
    """Complaints about a file, none if it keeps to the dialect."""
    read = subprocess.run([clang, *FLAGS, "-Xclang", "-ast-dump=json", str(path)], capture_output=True, text=True)
    if read.returncode != 0:
        return [line for line in read.stderr.splitlines() if "error:" in line] or [read.stderr]
    sys.setrecursionlimit(100000)
    search = Search()
    search.visit(json.loads(read.stdout), None, 0)
    search.find_recursion()
    return sorted(set(search.complaints))


def main():
    clang = os.environ.get("RUSSET_DIALECT_CLANG") or shutil.which("clang") or shutil.which("clang-14")
    if not clang:
        print("dialect: no clang, nothing was checked")
        return 77
    refused = 0
    # Processes, since most of the time goes to reading trees.
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        for path, complaints in zip(sys.argv[1:], pool.map(functools.partial(check, clang), sys.argv[1:])):
            refused += bool(complaints)
            for complaint in complaints:
                print(f"{path}: {complaint}")
    print(f"dialect: {len(sys.argv) - 1} files, {refused} refused")
    return 1 if refused or len(sys.argv) == 1 else 0


if __name__ == "__main__":
    sys.exit(main())
