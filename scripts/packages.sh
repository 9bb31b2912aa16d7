# What russet is built with, by package name: the one place that lists it. Sourced by setup.sh. The same names serve
# Debian 12, Debian 13 and Ubuntu 24.04; none has a version in it.
apt_build="g++ clang cmake ninja-build ccache python3 python3-pip
  libdnnl-dev libhwy-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libjpeg-dev libpng-dev zlib1g-dev libzip-dev libutf8proc-dev libopenblas-openmp-dev
  libprotozero-dev libisal-dev
  libgtest-dev libbenchmark-dev"
apt_format="python3 python3-pip"  # for the formatter itself: fetch_clang_format.sh
apt_check="python3 python3-pip clang clang-tidy"
apt_fuzz="clang libclang-rt-dev"
apt_data="zstd"
apt_aarch64="g++-aarch64-linux-gnu qemu-user"

brew_build="cmake ninja ccache python3 onednn highway fmt cli11 nlohmann-json jpeg-turbo libpng zlib libzip
  utf8proc protozero isa-l libomp googletest google-benchmark"
brew_format="python3"
brew_check="python3 llvm"
brew_fuzz="llvm"
brew_data="zstd"
