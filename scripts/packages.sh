# What russet is built with, by package name: the one place that lists it. Sourced by setup.sh.
apt_build="g++ clang-14 lld-14 cmake ninja-build ccache python3 python3-pip
  libdnnl-dev libhwy-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libjpeg-dev libpng-dev zlib1g-dev libopenblas-openmp-dev
  libgtest-dev libbenchmark-dev"
apt_format="clang-format-14"
apt_check="clang-format-14 clang-tidy-14 clang-14"
apt_fuzz="clang-14 libclang-rt-14-dev"
apt_data="zstd"

brew_build="cmake ninja ccache python3 gcc onednn highway fmt cli11 nlohmann-json jpeg-turbo libpng zlib openblas
  googletest google-benchmark"
brew_format="llvm@14"
brew_check="llvm@14"
brew_fuzz="llvm@14"
brew_data="zstd"
