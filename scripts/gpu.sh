#!/usr/bin/env bash
# gpu.sh - the tests and benches that need an NVIDIA GPU. Without a device: one line, and exit 77.
#   scripts/gpu.sh test|bench
#   scripts/gpu.sh bundle    pack both for a machine with a GPU and nothing else: build/gpu-bundle.tar.gz; needs no GPU
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$REPO"

BIN=$REPO/build/release/bin

has_gpu() { [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; }

# cuBLAS and NCCL: the machine's own, if the linker or LD_LIBRARY_PATH finds them, else NVIDIA's wheels.
libraries() {
    local known dir library dirs
    known=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p) # not in a user's PATH in Debian
    IFS=: read -ra dirs <<<"${LD_LIBRARY_PATH:-}"
    for dir in "${dirs[@]}"; do
        for library in libcublasLt.so.13 libnccl.so.2; do
            [ ! -e "$dir/$library" ] || known+=" $library"
        done
    done
    case $known in *libnccl.so.2*libcublasLt.so.13* | *libcublasLt.so.13*libnccl.so.2*) return ;; esac
    say "cuBLAS, NVRTC and NCCL (build/tools/cuda-libraries, 1.1 GB)"
    scripts/cuda-kit.py libraries build/tools/cuda-libraries
}

build() {
    scripts/deps.sh build test cuda
    say "build: release, with CUDA"
    cmake --preset release -DWITH_CUDA=on >"$LOGS/cmake-release.log" 2>&1 || die "cmake failed: build/logs/cmake-release.log"
    cmake --build build/release >"$LOGS/build-release.log" 2>&1 || die "compiling failed: build/logs/build-release.log"
}

# Check the kernels' memory accesses.
sanitize() {
    scripts/cuda-kit.py sanitizer build/tools/cuda-sanitizer || say "NVIDIA's wheel with compute-sanitizer cannot be downloaded"
    say "compute-sanitizer"
    scripts/gpu-sanitize.sh build/tools/cuda-sanitizer build/release/tests/unit_kernels_cuda_gpu_*
}

# A missing bench is not part of this version; a failed one fails the command; a skipped one prints the reason.
benches() {
    local bench
    for bench in gpu-bench nccl-bench; do
        [ -x "$BIN/$bench" ] || continue
        say "$bench"
        "$BIN/$bench" || [ $? -eq 77 ]
    done
    # PyTorch as a comparison, if this machine has one that sees the GPU.
    local python=${PYTHON:-build/venv/bin/python}
    if [ -x "$python" ] && "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
        say "PyTorch on the same GPU"
        "$python" bench/gpu/pytorch.py
    fi
}

BUNDLE_MB=50
GPU_TESTS=(unit_kernels_cuda_gpu_{copies,elements,ops,sequence_ops} unit_collectives_nccl_test_nccl_gpu
    unit_trainer_run_resident_test_{ranks,stages,gpt2_bf16,gpt2_bf16_run})

# The libraries that these programs load, without glibc's (each machine has them) and NVIDIA's.
libraries_of() {
    ldd "$@" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
        grep -Ev '/(ld-linux.*|lib(c|m|pthread|dl|rt|resolv))\.so\.[0-9]+$'
}

# pack BUILD-FOLDER FOLDER: copy the bundle's files from the built programs.
pack() {
    local build=$1 to=$2 program
    rm -rf "$to"
    mkdir -p "$to"/{bin,tests,lib,golden}
    for program in trainer gpu-bench nccl-bench; do cp "$build/bin/$program" "$to/bin/"; done
    cp "$build/bin/libtk_cuda.so" "$to/bin/"
    for program in "${GPU_TESTS[@]}"; do cp "$build/tests/$program" "$to/tests/"; done
    mapfile -t programs < <(find "$to/bin" "$to/tests" -type f)
    strip --strip-debug "${programs[@]}"
    libraries_of "${programs[@]}" | xargs cp -L -t "$to/lib"
    cp tests/golden/torch/gpt2.bin tests/golden/torch/gpt2_bf16.* "$to/golden/"
    cp tests/unit/trainer/run/resident/small_gpt2.yaml bench/gpu/pytorch.py scripts/gpu-sanitize.sh "$to/"
    cp scripts/gpu-run.sh "$to/run.sh"
    cp "$build/kernels.txt" "$to/" 2>/dev/null || echo "registers and spills of each kernel: not in this bundle" >"$to/kernels.txt"
    printf 'Torchkeeper %s, built %s\n' "$(git describe --always --dirty 2>/dev/null || echo unknown)" \
        "$(date -u +%Y-%m-%d)" >"$to/VERSION"
}

# For GPUs of compute capability 9.0 (H100, H200), 10.0 (B200) and 12.0 (RTX 50). The PTX for others needs a driver as new as the
# compiler: 595 for CUDA 13.5.
bundle() {
    local build=build/gpu to=build/gpu-bundle bytes
    scripts/deps.sh build test cuda
    say "build: release, for sm_90, sm_100, sm_120"
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=gcc -DWITH_CUDA=on \
        "-DTK_CUDA_ARCHITECTURES=90;100;120" -DTK_NVCC_EXTRA="-Xptxas=-v" >"$LOGS/cmake-gpu.log" 2>&1 || die "cmake failed: build/logs/cmake-gpu.log"
    rm -rf "$build"/kernels/cuda/kernels_cuda.dir # so that the compiler reports on all kernels
    cmake --build "$build" --target kernels_cuda >"$LOGS/build-gpu.log" 2>&1 || die "compiling failed: build/logs/build-gpu.log"
    scripts/gpu-kernels.py "$LOGS/build-gpu.log" >"$build/kernels.txt"
    cmake --build "$build" --target trainer gpu-bench nccl-bench tk_cuda "${GPU_TESTS[@]}" >"$LOGS/build-gpu.log" 2>&1 ||
        die "compiling failed: build/logs/build-gpu.log"
    pack "$build" "$to"
    tar -C build --owner=0 --group=0 --sort=name -czf build/gpu-bundle.tar.gz gpu-bundle
    bytes=$(stat -c %s build/gpu-bundle.tar.gz)
    [ "$bytes" -le $((BUNDLE_MB << 20)) ] || die "build/gpu-bundle.tar.gz: $bytes bytes, expected at most $BUNDLE_MB MiB"
    printf 'build/gpu-bundle.tar.gz: %d.%d MiB. On the machine with the GPU: tar xzf gpu-bundle.tar.gz && gpu-bundle/run.sh\n' \
        $((bytes >> 20)) $(((bytes & 0xfffff) * 10 >> 20))
}

case ${1:-} in
bundle)
    bundle
    exit
    ;;
pack)
    pack "${@:2}"
    exit
    ;;
test | bench) ;;
*) die "expected test, bench or bundle" ;;
esac
has_gpu || {
    echo "gpu-$1: skipped: no NVIDIA GPU on this machine (neither /dev/nvidiactl nor /dev/dxg)"
    exit 77
}
libraries
build
if [ "$1" = test ]; then
    TK_GPU_REQUIRED=1 ctest --test-dir build/release -L gpu --output-on-failure --no-tests=error --timeout 900
    TK_GPU_REQUIRED=1 sanitize
else
    benches
fi
