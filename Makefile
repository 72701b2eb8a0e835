# The verbs; each is one script or one cmake call. `make help` explains them.
.DEFAULT_GOAL := help
SHELL := /bin/bash

help: ## show this text
	@printf 'usage: make VERB [VARIABLE=value ...]\n\n'
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-17s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nvariables\n'
	@printf '  CLUSTER=current   demo: use the current kubectl context, not the local Kubernetes (needs REGISTRY= or LOAD=)\n'
	@printf '  LOAD=kind         demo, with CLUSTER=current: load the images into the nodes; kind, minikube, or none: they are there\n'
	@printf '  REGISTRY=host/me  demo, release: push the images there first\n'
	@printf '  VERSION=v1.2.3    release: as CMakeLists.txt and CHANGELOG.md have it\n'
	@printf '  COSIGN_KEY=FILE   release: the private key that signs it; none: no signatures\n'
	@printf '  GPUS=8            cluster-up, demo: how many simulated GPUs each local node has\n'
	@printf '  NODES=2           cluster-up: a second node, which deploy/local/cluster can kill, cut and delay\n'
	@printf '  EPOCHS=10         demo: epochs to train\n'
	@printf '  SMALL=1           bench-operator: a minute, and only figures that do not depend on the machine are checked\n'
	@printf '  PYTHON=FILE       bench-trainer, bench-recovery, test-big: a Python that has torch; default: the one of build/venv\n'
	@printf '  REPEATS=5         bench-trainer, bench-gpt2, bench-checkpoints: a minute each\n'
	@printf '  KILLS=50          bench-recovery: about a second each\n'
	@printf '  KIND=rank         bench-recovery: what is killed: rank, launcher; container, pod, node: in the cluster of kubectl\n'
	@printf '  SHORT=1           soak: a tenth of it, some minutes\n'
	@printf '  TARGET=idx        fuzz: only this target, tests/fuzz/fuzz_idx.c\n'
	@printf '  SECONDS=60 JOBS=1 fuzz: CPU seconds per target, targets at once; findings stay in build/fuzz-found\n'
	@printf '  TRIALS=100 SEED=1 chaos: how many trials, from this seed; TRIAL=7: only that one; FAULT=, WAY=: of one kind; JOBS=3 at once\n'
	@printf '  PARTS=dashboards  pictures: only the dashboards, without root; PARTS=cluster: only the others\n'
	@printf '  PREFIX=DIR        install: default /usr/local; DESTDIR=DIR is put in front of it\n'
	@printf '  WITH_CUDA=auto    build, bench, coverage: on, off, or auto: GPU support where a CUDA toolkit is installed or can be fetched\n'
	@printf '  OPERATOR=FILE     bench-operator: measure this program instead of the image's\n'

demo: ## build all, start Kubernetes, install the operator, train the MNIST CNN, show the result
	@scripts/demo.sh

test: ## every test; as root also those against a real Kubernetes
	@scripts/test.sh

test-long: build ## before a release: the tests that test leaves out or shortens, with one table at the end (hours; root)
	@scripts/test-long.sh

faults: build ## every class of faults for the operator, counted, in one table (root; part of it runs in test)
	@scripts/faults.sh

soak: ## 10,000 lives of jobs at random, twice (release, ASan), on a real API server; SHORT=1: 1,000; no root
	@e2e/faults/run.sh $(if $(SHORT),--short) soak

fuzz: ## libFuzzer on each reader of untrusted input (TARGET=name: only that one), SECONDS each
	@scripts/deps.sh build test
	@JOBS='$(or $(JOBS),1)' scripts/fuzz.sh '$(or $(SECONDS),60)' $(TARGET)

coverage: ## unit tests under ASan and UBSan with clang; fails where lines or branches of a program are below tests/coverage.floors
	@scripts/deps.sh build test coverage
	@scripts/coverage.sh

test-versions: ## the operator with the API servers of the oldest and the newest Kubernetes that it supports; no root
	@e2e/versions/run.sh

test-queues: ## queued jobs under the real Kueue, gangs under the real coscheduling, both from their Go modules; no root
	@e2e/queues/run.sh

chaos: ## faults at random moments of training jobs, a hundred trials; table and seed at the end (root)
	@e2e/chaos/run.sh $(foreach o,trials seed trial fault way jobs,$(if $($(shell echo $(o) | tr a-z A-Z)),--$(o) $($(shell echo $(o) | tr a-z A-Z))))

test-nodes: ## lost, cut and drained nodes: training jobs on two local nodes (root; part of test-long)
	@e2e/nodes/run.sh && deploy/local/cluster down && e2e/nodes/states.sh

test-big: build ## exports and checkpoints beyond 4 GiB, opened by torch (10 GB of disk and of memory)
	@PYTHON='$(PYTHON)' tests/big/run.sh

check: ## the quick part of test: style and unit tests as shipped, no root; T=cli/why: only those unit tests
	@scripts/test.sh $(if $(T),--only '$(T)',--unit)

build: ## compile the programs into build/release/bin
	@scripts/deps.sh build test
	@set -o pipefail; cmake --preset release -DWITH_CUDA=$(or $(WITH_CUDA),auto) | sed -n 's/^-- CUDA/CUDA/p'
	@cmake --build build/release

install: ## kubectl-ptj with its completions and man page below PREFIX (/usr/local) and DESTDIR; after `make build`, as root or not
	@[ -x build/release/bin/kubectl-ptj ] || { echo 'make install: nothing is built yet; run: make build' >&2; exit 1; }
	@cmake --install build/release --component cli --prefix '$(or $(PREFIX),/usr/local)'

images: ## build the container images into build/images
	@scripts/deps.sh images
	@deploy/images/build.sh all

pictures: ## make the pictures of README and docs from running programs (root); PARTS=: some of them
	@scripts/pictures/make.sh $(PARTS)

release: ## images by digest, manifests, launchers and sums into build/release-VERSION; VERSION=v1.2.3 REGISTRY=host/me COSIGN_KEY=FILE|none (root)
	@scripts/deps.sh images
	@scripts/release.sh '$(VERSION)' '$(REGISTRY)'

cluster-up: ## start the local Kubernetes (root), with one node or NODES=2; idempotent
	@scripts/deps.sh cluster
	@deploy/local/cluster up

cluster-down: ## stop the local Kubernetes and remove all it left on the machine
	@deploy/local/cluster down

cluster-status: ## show its parts, its health and the KUBECONFIG path
	@deploy/local/cluster status

kueue-up: ## start the real Kueue beside the local Kubernetes (root); the first time it is built, some minutes
	@deploy/local/kueue up

kueue-down: ## stop it and remove all it left in the cluster, queues too
	@deploy/local/kueue down

bench: build ## our figures: kernels and collectives
	@build/release/bin/kernels-bench && build/release/bin/collectives-bench
	@[ ! -x build/venv/bin/python ] || build/venv/bin/python bench/collectives/gloo.py

bench-kernels: ## the CPU kernels beside oneDNN and OpenBLAS, for each layer of the presets
	@scripts/deps.sh build peers
	@cmake -S . -B build/peers -G Ninja -DCMAKE_BUILD_TYPE=Release -DTK_TESTS=OFF -DTK_OPERATOR=OFF -DTK_BENCH_PEERS=ON >/dev/null
	@cmake --build build/peers --target kernels-bench
	@OMP_NUM_THREADS=1 build/peers/bin/kernels-bench

bench-operator: ## the operator at scale: many jobs at once on a real API server with simulated nodes
	@SMALL='$(SMALL)' OPERATOR='$(OPERATOR)' bench/operator/run.sh

bench-trainer: build ## the trainer beside PyTorch: time per step, 1 to 2 ranks, start-up (needs a Python with torch)
	@python3 bench/trainer/bench.py --python $(or $(PYTHON),build/venv/bin/python) $(if $(REPEATS),--repeats $(REPEATS))

bench-recovery: build ## from a killed rank to the next training step, 50 times, beside PyTorch (needs a Python with torch)
ifneq ($(filter container pod node,$(KIND)),)
	@python3 bench/trainer/recovery_cluster.py $(KIND) $(if $(KILLS),--kills $(KILLS))
else
	@python3 bench/trainer/recovery.py --python $(or $(PYTHON),build/venv/bin/python) $(if $(KILLS),--kills $(KILLS)) $(if $(KIND),--kind $(KIND))
endif

bench-gpt2: build ## the small GPT-2 of bytes beside PyTorch's (needs a Python with torch)
	@$(or $(PYTHON),build/venv/bin/python) bench/trainer/gpt2.py $(if $(REPEATS),--repeats $(REPEATS)) --learn

bench-checkpoints: build ## the steps of two ranks with a checkpoint every 20 steps and with none
	@python3 bench/trainer/checkpoints.py $(if $(REPEATS),--repeats $(REPEATS))

# 77: there is no GPU, and the script has printed that.
gpu-test: ## the tests that need an NVIDIA GPU; skipped without one
	@scripts/gpu.sh test || [ $$? -eq 77 ]

gpu-bench: ## step times and collectives on NVIDIA GPUs; skipped without one
	@scripts/gpu.sh bench || [ $$? -eq 77 ]

gpu-bundle: ## both in one archive for a machine with a GPU and nothing else: build/gpu-bundle.tar.gz (needs no GPU)
	@scripts/gpu.sh bundle

format: ## clang-format every C file in place
	@git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

clean: ## remove what was built (downloads and the local Kubernetes' programs too)
	@rm -rf build

.PHONY: $(shell awk -F: '/^[a-z0-9-]+:.*\#\# / {print $$1}' $(MAKEFILE_LIST))
