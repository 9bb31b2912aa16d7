#!/usr/bin/env python3
"""scripts/proposals_table.py: which proposals of which questions it keeps.

Usage: proposals_table_test.py SCRIPT"""
import pathlib
import subprocess
import sys
import tempfile

SOURCE = "proposals of cudnn 9.19.0 sm_90:"
FIRST = f"""something else
russet kernels: {SOURCE} a convolution, stride 2 2 [30.00 20.00 25.00 us]
russet kernels: {SOURCE} as fast [10.00 9.80 us]
russet kernels: {SOURCE} too short to count [1.00 0.90 us]
russet kernels: {SOURCE} only one [5.00 us]
"""
# In two runs the second proposal is the fastest once, and the third on the whole.
SECOND = f"russet kernels: {SOURCE} a convolution, stride 2 2 [30.00 28.00 15.00 us]\n"
OTHER = "russet kernels: proposals of cublaslt 13.1.0 sm_90: a product [40.00 35.00 us]\n"


def entries(table):
    return [line.strip() for line in table.read_text().splitlines() if line.startswith("    {")]


def main(script):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        table = folder / "table.cpp"
        table.write_text("")

        def run(*texts):
            logs = []
            for number, text in enumerate(texts):
                logs.append(folder / f"{number}.log")
                logs[-1].write_text(text)
            subprocess.run([sys.executable, script, "--table", table, *logs], check=True, capture_output=True)

        run(FIRST)
        assert entries(table) == ['{"cudnn 9.19.0 sm_90", 1, "a convolution, stride 2 2"},'], entries(table)
        run(FIRST, SECOND)
        assert entries(table) == ['{"cudnn 9.19.0 sm_90", 2, "a convolution, stride 2 2"},'], entries(table)
        run(OTHER)  # leaves what it does not tell of
        assert entries(table) == ['{"cublaslt 13.1.0 sm_90", 1, "a product"},',
                                  '{"cudnn 9.19.0 sm_90", 2, "a convolution, stride 2 2"},'], entries(table)
    print("proposals_table_test: passed")


if __name__ == "__main__":
    main(sys.argv[1])
