#!/usr/bin/env bash
# gpu.sh - what needs an NVIDIA GPU: its tests, its benches. Without a device: one line, and exit 77.
#   scripts/gpu.sh test|bench
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$REPO"

BIN=$REPO/build/release/bin

has_gpu() { [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; }

# cuBLAS and NCCL: the machine's own, where the linker or LD_LIBRARY_PATH knows them, else NVIDIA's wheels.
libraries() {
    local known dir library dirs
    known=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p) # Debian keeps it from users
    IFS=: read -ra dirs <<<"${LD_LIBRARY_PATH:-}"
    for dir in "${dirs[@]}"; do
        for library in libcublasLt.so.13 libnccl.so.2; do
            [ ! -e "$dir/$library" ] || known+=" $library"
        done
    done
    case $known in *libnccl.so.2*libcublasLt.so.13* | *libcublasLt.so.13*libnccl.so.2*) return ;; esac
    say "cuBLAS and NCCL (build/tools/cuda-libraries, 0.9 GB)"
    scripts/cuda-kit.py libraries build/tools/cuda-libraries
}

build() {
    scripts/deps.sh build test cuda
    say "build: release, with CUDA"
    cmake --preset release -DWITH_CUDA=on >"$LOGS/cmake-release.log" 2>&1 || die "cmake failed: build/logs/cmake-release.log"
    cmake --build build/release >"$LOGS/build-release.log" 2>&1 || die "compiling failed: build/logs/build-release.log"
}

# What the kernels do to memory, beside what they compute.
sanitize() {
    scripts/cuda-kit.py sanitizer build/tools/cuda-sanitizer || say "NVIDIA's wheel with compute-sanitizer is not to be had"
    say "compute-sanitizer"
    scripts/gpu-sanitize.sh build/tools/cuda-sanitizer build/release/tests/unit_kernels_cuda_gpu_*
}

# A bench that is missing is not part of this version; one that fails fails the verb.
benches() {
    local bench
    for bench in gpu-bench nccl-bench; do
        [ -x "$BIN/$bench" ] || continue
        say "$bench"
        "$BIN/$bench"
    done
    # PyTorch beside it, where there is one that sees the GPU.
    local python=${PYTHON:-build/venv/bin/python}
    if [ -x "$python" ] && "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
        say "PyTorch on the same GPU"
        "$python" bench/gpu/pytorch.py
    fi
}

case ${1:-} in
test | bench) ;;
*) die "expected test or bench" ;;
esac
has_gpu || {
    echo "gpu-$1: skipped: no NVIDIA GPU on this machine (neither /dev/nvidiactl nor /dev/dxg)"
    exit 77
}
libraries
build
if [ "$1" = test ]; then
    TK_GPU_REQUIRED=1 ctest --test-dir build/release -L gpu --output-on-failure --no-tests=error
    TK_GPU_REQUIRED=1 sanitize
else
    benches
fi
