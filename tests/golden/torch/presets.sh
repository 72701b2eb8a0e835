#!/usr/bin/env bash
# Record the presets' first steps in PyTorch again: presets.sh PYTHON FASHION_MNIST_FOLDER
set -euo pipefail
cd "$(dirname "$0")"
for world in 1 2; do
  "$1" presets.py fashion-mlp "$world" "$2" >"fashion-mlp-$world.txt"
  "$1" presets.py linear "$world" >"linear-$world.txt"
  "$1" presets.py convnet "$world" >"convnet-$world.txt"
done
"$1" presets.py pipeline 1 >pipeline-1.txt # its ranks are stages
