#!/usr/bin/env bash
# run.sh - Torchkeeper on a machine with an NVIDIA GPU, from a bundle of programs that were built elsewhere: figures first, then
# correctness. Needs a driver for CUDA 13 (580 or newer; 595 for GPUs newer than compute capability 12.1), cuBLAS 13 and, for ranks,
# NCCL; no compiler, no network, no root.
#   ./run.sh [PART...]    figures, checks, ranks, sanitizer, pytorch; default: all of them in this order
# Environment
#   LIMIT_S=540       seconds for everything; what no longer fits is listed as not run
#   OUT=out           folder for the logs: NN-name.log each, and all.log
#   PYTHON=python3    for the comparison with PyTorch
#   EMULATED=FOLDER   a rehearsal without a GPU: GPU support and NCCL emulated on the CPU, from this folder, and small sizes
# Exit status: 0 all that ran succeeded, 1 something failed, 77 there is no GPU, with the reason.
# shellcheck disable=SC2317 # the parts are called by their names
set -uo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LIMIT_S=${LIMIT_S:-540} OUT=${OUT:-out} PYTHON=${PYTHON:-python3} EMULATED=${EMULATED:-}
BIN=$HERE/bin TESTS=$HERE/tests
NVIDIA=(libcublasLt.so.13 libnvrtc.so.13 libnccl.so.2) # cuBLAS loads NVIDIA's runtime compiler for some products
libraries=$HERE/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} # what our programs load, for them alone
wheels=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null)
began=$SECONDS number=0 worst=0
rows=()

note() { printf '\n== %s\n' "$*" | tee -a "$OUT/all.log"; }

# Folders that hold the library NAME: those of LD_LIBRARY_PATH, of the loader's cache, of CUDA's toolkit, of Python's wheels.
find_library() {
    local name=$1 dir dirs
    IFS=: read -ra dirs <<<"${LD_LIBRARY_PATH:-}"
    for dir in "${dirs[@]}" /usr/local/cuda/lib64 /usr/local/cuda-13*/lib64 /usr/lib/x86_64-linux-gnu /usr/lib64 \
        ${wheels:+"$wheels"/nvidia/cu13/lib "$wheels"/nvidia/*/lib}; do
        if [ -n "$dir" ] && [ -e "$dir/$name" ]; then
            echo "$dir"
            return
        fi
    done
    PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | sed -n "s,.*=> \(.*\)/$name\$,\1,p" | head -n 1
}

# item NAME LIMIT COMMAND...: run the command for at most LIMIT seconds (a rehearsal has no such limit) and within the total time;
# continue even if it fails.
item() {
    local name=$1 limit=$2 left log from=$SECONDS status=0 what
    shift 2
    left=$((LIMIT_S - (SECONDS - began)))
    number=$((number + 1))
    if [ "$left" -lt 5 ]; then
        rows+=("$(printf '%-24s %8s  not run: LIMIT_S=%d is over' "$name" - "$LIMIT_S")")
        return
    fi
    [ "$limit" -le "$left" ] && [ -z "$EMULATED" ] || limit=$left
    note "$name (at most $limit s): ${*##*/}"
    log=$OUT/$(printf '%02d' "$number")-$name.log
    LD_LIBRARY_PATH=$libraries ITEM_S=$limit timeout -k 5 "$limit" "$@" >"$log" 2>&1 </dev/null || status=$?
    tail -n 200 -- "$log" | tee -a "$OUT/all.log"
    case $status in
    0) what=ok ;;
    75) what="not all done: $(tail -n 1 -- "$log" | cut -c 1-80)" ;;
    77) what="skipped: $(tail -n 1 -- "$log" | cut -c 1-60)" ;;
    124 | 137) what="not done after $limit s" worst=1 ;;
    *) what="FAILED: exit status $status" worst=1 ;;
    esac
    rows+=("$(printf '%-24s %6d s  %s' "$name" $((SECONDS - from)) "$what")")
}

# The machine: GPU, driver, libraries; and what the compiler made of each kernel.
versions() {
    cat "$HERE/VERSION"
    if command -v nvidia-smi >/dev/null; then
        nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv
    fi
    LD_LIBRARY_PATH=$libraries "$BIN/gpu-bench" --versions
    for library in "${NVIDIA[@]}"; do
        printf '%-18s %s\n' "$library" "$(find_library "$library" | grep . || echo 'not found')"
    done
    cat "$HERE/kernels.txt"
}

bench() { item "$(basename "$1" .yaml)-$2" "$3" "$BIN/gpu-bench" "$STEPS" "$1" "$2"; }

# The most important figures first. Which products run on tensor cores is printed once.
figures() {
    if [ -n "$EMULATED" ]; then
        bench "$HERE/small_gpt2.yaml" 2 120
        bench convnet 2 60
        return
    fi
    TK_CUBLAS=print bench gpt2 64 150
    bench fashion-mlp 32 60
    bench mnist-cnn 32 60
    for rows in 32 4 8 16; do bench gpt2 "$rows" 60; done
    for net in fashion-mlp mnist-cnn; do
        for rows in 512 8192; do bench "$net" "$rows" 60; done
    done
    for rows in 32 512 8192; do bench convnet "$rows" 60; done
    item nccl-bench 60 "$BIN/nccl-bench"
}

checks() {
    if [ -n "$EMULATED" ]; then
        item gpt2_bf16 300 "$TESTS/unit_trainer_run_resident_test_gpt2_bf16" "$EMULATED"
        return
    fi
    for name in elements ops sequence_ops copies; do
        item "kernels-$name" 120 "$TESTS/unit_kernels_cuda_gpu_$name"
    done
    for name in gpt2_bf16 gpt2_bf16_run; do
        item "$name" 120 "$TESTS/unit_trainer_run_resident_test_$name" "$BIN"
    done
}

ranks() {
    if [ -n "$EMULATED" ]; then
        item ranks 300 "$TESTS/unit_trainer_run_resident_test_ranks" emulated "$EMULATED" 'a_gpt2_*' # one that reads a file
        item stages 300 "$TESTS/unit_trainer_run_resident_test_stages" emulated "$EMULATED"
        return
    fi
    item nccl 120 "$TESTS/unit_collectives_nccl_test_nccl_gpu"
    for name in ranks stages; do
        item "$name" 200 "$TESTS/unit_trainer_run_resident_test_$name" gpu "$BIN"
    done
}

sanitizer() {
    [ -z "$EMULATED" ] || return 0
    local kernels=$TESTS/unit_kernels_cuda_gpu # attention is in the first
    # shellcheck disable=SC2016 # the limit that item gives
    item sanitizer 400 "$BASH" -c 'LIMIT_S=120 TOTAL_S=$((ITEM_S - 15)) "$@"' - \
        "$HERE/gpu-sanitize.sh" "$HERE" "$kernels"_{sequence_ops,ops,elements,copies}
}

pytorch() {
    [ -z "$EMULATED" ] || return 0
    item pytorch 400 env LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" "$PYTHON" "$HERE/pytorch.py"
}

parts=("$@")
[ $# -gt 0 ] || parts=(figures checks ranks sanitizer pytorch)
for part in "${parts[@]}"; do
    case $part in
    figures | checks | ranks | sanitizer | pytorch) ;;
    *)
        echo "run.sh: $part: expected figures, checks, ranks, sanitizer or pytorch" >&2
        exit 2
        ;;
    esac
done
if [ -z "$EMULATED" ] && [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
    echo "run.sh: skipped: no NVIDIA GPU on this machine (neither /dev/nvidiactl nor /dev/dxg)"
    exit 77
fi
mkdir -p "$OUT" && : >"$OUT/all.log" || exit 1
STEPS=${STEPS:-200}
if [ -n "$EMULATED" ]; then
    STEPS=2
    export TK_GPU_PLUGIN_DIR=$EMULATED
else
    for library in "${NVIDIA[@]}"; do
        dir=$(find_library "$library")
        libraries+=${dir:+:$dir}
    done
fi
export TK_GOLDEN_DIR=$HERE/golden TK_GPU_REQUIRED=1
versions 2>&1 | tee -a "$OUT/all.log"
for part in "${parts[@]}"; do "$part"; done

note "$((SECONDS - began)) s in all"
printf '%s\n' "${rows[@]}" | tee -a "$OUT/all.log"
exit "$worst"
