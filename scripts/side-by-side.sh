#!/usr/bin/env bash
# side-by-side.sh - ctest, with as many tests at once as keep the machine busy: those that need a core each have one (tk_busy of
# cmake/torchkeeper.cmake), those that wait run beside them. `ctest -j 2` runs the same tests, but waits with those that wait.
#   scripts/side-by-side.sh BUILD-FOLDER [CTEST-ARGUMENT]...
set -euo pipefail

build=$1 cores=$(nproc)
printf '{"version": {"major": 1, "minor": 0}, "local": [{"cores": [{"id": "all", "slots": %d}]}]}\n' "$cores" >"$build/cores.json"
exec ctest --test-dir "$build" --resource-spec-file "$(realpath "$build/cores.json")" -j "$((3 * cores))" --no-tests=error "${@:2}"
