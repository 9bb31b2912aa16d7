#!/usr/bin/env bash
# scripts/fetch_cuda_headers.sh: loads CUDA's headers, with those of cuBLASLt and cuDNN, into the user's cache, from the
# wheels that cuda_headers.txt names, unless they are there. Not where a toolkit lies in CUDA_HOME or /usr/local/cuda.
set -euo pipefail
cd "$(dirname "$0")"
version=$(sed -n 's/^nvidia-cuda-runtime==\([0-9.]*\) .*/\1/p' cuda_headers.txt)
target=${XDG_CACHE_HOME:-$HOME/.cache}/russet/cuda-headers-$version
for include in "${CUDA_HOME:-/usr/local/cuda}/include" /usr/local/cuda/include "$target/include"; do
  if [ -e "$include/nvrtc.h" ]; then
    echo "cuda: the headers are those in $include"
    exit 0
  fi
done
echo "cuda: loading CUDA's headers: 900 MB are fetched, 5 MB of them kept"
./fetch_wheel.sh cuda_headers.txt "$target" 'nvidia/*/' include
