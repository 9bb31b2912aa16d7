# What a person types. `make help` lists it.
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
# More options for CMake (-DNAME=VALUE), a pattern of ctest's names for `test`, `asan`, `tsan` and `clang`, and more
# options for ctest in `test-all`.
CMAKE_FLAGS ?=
TESTS ?=
CTEST_FLAGS ?=
FUZZ_SECONDS ?= 60
# The command that `make demo` ends with.
DEMO = build/bin/russet train lenet5 --data shapes --batch 32 --epochs 5 --out demo

.PHONY: help setup build demo test test-all bundle bench check asan tsan clang fuzz cuda macos aarch64 clean

help:
	@echo 'make demo      sets everything up, builds the command line, trains a small network on the embedded data set'
	@echo 'make test      sets everything up, builds, runs the tests (TESTS=conformance: those of such names)'
	@echo 'make test-all  the tests that take minutes, too; on Linux they include what `make macos aarch64` does'
	@echo 'make bundle    packs what was built, and the libraries that it needs, for another Linux: russet-bundle.tar.xz'
	@echo 'make setup     installs what is missing: apt on Debian and Ubuntu, brew on macOS'
	@echo 'make build     builds the library, the command line (build/bin/russet), tests, benchmarks, examples'
	@echo 'make bench     builds and runs the benchmark programs'
	@echo 'make check     format, layering, clang-tidy'
	@echo 'make asan      all tests under the address and undefined-behaviour sanitizers'
	@echo 'make tsan      all tests under the thread sanitizer'
	@echo 'make clang     all tests, built with clang'
	@echo 'make fuzz      each fuzz target for FUZZ_SECONDS=60'
	@echo 'make cuda      builds with the device cuda where no toolkit is installed: fetches its headers first'
	@echo 'make macos     on Linux: compiles and links the library and the command line for macOS; nothing runs'
	@echo 'make aarch64   on Debian: builds for aarch64 Linux, runs unit and conformance tests of it under qemu'
	@echo 'make clean     removes what was built'

setup:
	@scripts/setup.sh build

build: setup
	@scripts/build.sh release $(JOBS) all $(CMAKE_FLAGS)

# Only what it runs.
demo: setup
	@scripts/build.sh release $(JOBS) russet-cli $(CMAKE_FLAGS)
	$(DEMO)

test: build
	@scripts/test.sh build '$(TESTS)'

test-all: build
	@scripts/test.sh build --all $(CTEST_FLAGS)

bundle: build
	@scripts/bundle.sh

cuda: setup
	@scripts/fetch_cuda_headers.sh
	@scripts/build.sh release $(JOBS) all $(CMAKE_FLAGS)

macos: setup
	@scripts/macos.sh $(JOBS)

aarch64: setup
	@scripts/aarch64.sh $(JOBS)

bench: build
	@for program in build/bench/*_bench; do echo "== $$program"; $$program || exit 1; done

check: setup
	@scripts/setup.sh check
	@scripts/check_format.sh
	@scripts/check_layers.py
	@scripts/check_tidy.sh $(JOBS)

asan tsan clang: setup
	@if [ $@ = clang ]; then scripts/setup.sh fuzz; fi
	@scripts/build.sh $@ $(JOBS) all $(CMAKE_FLAGS)
	@scripts/test.sh build/$@ '$(or $(TESTS),--all)'

fuzz: setup
	@scripts/setup.sh fuzz
	@scripts/build.sh fuzz $(JOBS) all $(CMAKE_FLAGS)
	@scripts/fuzz.sh $(FUZZ_SECONDS)

clean:
	rm -rf build
