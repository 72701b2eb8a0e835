#!/bin/sh
# made_up_layer.sh TREE [CC] - apply the change that trainer/DESIGN.md shows, a kind of layer that does not exist, to a copy of the
# tree; it may touch 7 files of the product. With CC: build the trainer there, hold the layer's gradients against finite differences,
# and train with it.
set -eu
tree=$1
cc=${2:-}
most=7
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "made_up_layer: $*" >&2
    exit 1
}

mkdir "$dir/tree"
(cd "$tree" && cp -R CMakeLists.txt bench cmake collectives common deploy docs host kernels launcher rendezvous scripts tests trainer "$dir/tree")
cd "$dir/tree"
awk '/^```diff$/ { on = 1; next } /^```$/ { on = 0 } on' trainer/DESIGN.md >"$dir/change"
GIT_CEILING_DIRECTORIES=$dir git apply "$dir/change" || fail "trainer/DESIGN.md: its change does not apply to this tree: make it anew"
files=$(grep '^+++ ' "$dir/change" | grep -vc '^+++ b/tests/')
[ "$files" -le "$most" ] || fail "the change touches $files files of the product, expected at most $most"
[ -n "$cc" ] || exit 0

{
    cmake -S . -B "$dir/build" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 -DTK_WERROR=ON -DTK_OPERATOR=OFF -DWITH_CUDA=off &&
        cmake --build "$dir/build" --target trainer unit_trainer_model_test_gradients
} >"$dir/log" 2>&1 || {
    tail -n 30 "$dir/log" >&2
    fail "the changed tree does not build"
}
"$dir/build/tests/unit_trainer_model_test_gradients"

cat >"$dir/made-up.yaml" <<'YAML'
name: made-up
model:
  input: {features: 12}
  layers:
    - {type: linear, name: a, out: 16}
    - {type: scale, name: b, start: 0.5}
    - relu
    - {type: linear, name: c, out: 4}
loss: cross_entropy
optimizer: {type: adam, lr: 0.01}
data: {format: synthetic, items: 640, outputs: 4}
defaults: {epochs: 8, batch_size: 32, log_interval: 20}
YAML
cd "$dir"
build/bin/trainer made-up.yaml --resume never --save_seconds 0 --log_format json --save_path w.safetensors >run || fail "the run ended with $?"
losses=$(sed -n 's/.*"event":"train".*"loss":\([0-9.e-]*\).*/\1/p' run)
echo "losses: $(echo "$losses" | tr '\n' ' ')"
echo "$losses" | awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(NR > 2 && last < 0.8 * first) }' || fail "the loss did not fall"
grep -q '"b.weight":{"dtype":"F32","shape":\[16\]' w.safetensors || fail "w.safetensors has no b.weight of 16 numbers"
build/bin/trainer --help | grep -q '{type: scale, name}' || fail "the manual does not name the layer"
