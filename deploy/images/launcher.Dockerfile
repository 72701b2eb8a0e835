# The launcher alone, for training images that do not have it: one static, position-independent program with musl in an empty image,
# which copies itself to where a job's container finds it, and beside it what it was made of (SPDX).
ARG BASE=debian:bookworm-slim
ARG ARCH=amd64

# The same words in operator, trainer and launcher, so that builders make it once.
FROM ${BASE} AS compiler
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev cmake ninja-build pkg-config \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*

FROM compiler AS libraries
ARG ARCH
# For another architecture than this machine's: a compiler for it, and its musl.
RUN case $ARCH in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) echo "ARCH=$ARCH: expected amd64 or arm64" >&2; exit 1 ;; esac \
 && compiler= \
 && if [ "$ARCH" != "$(dpkg --print-architecture)" ]; then \
        dpkg --add-architecture "$ARCH" && compiler=gcc-$(echo "$machine" | tr _ -)-linux-gnu; \
    fi \
 && apt-get update \
 && apt-get install -y --no-install-recommends $compiler "musl-dev:$ARCH" \
 && echo "$machine" >/machine \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*

FROM libraries AS build
COPY . /source
RUN machine=$(cat /machine) \
 && LDFLAGS=-Wl,-Map=/build/map cmake -S /source -B /build -G Ninja --toolchain /source/cmake/musl.cmake -DTK_MUSL_ARCH="$machine" \
        -DCMAKE_BUILD_TYPE=Release -DTK_OPERATOR=OFF -DTK_TRAINER=OFF -DTK_TESTS=OFF -DTK_LAUNCHER=ON -DTK_STATIC=ON \
 && cmake --build /build --target torchrun \
 && "$machine-linux-gnu-strip" /build/bin/torchrun \
 && chmod 555 /build/bin/torchrun \
 && version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' /build/CMakeCache.txt) \
 && /source/deploy/images/sbom.sh /build/bin/torchrun "$version" /build/map /build >/build/sbom.spdx.json

FROM --platform=linux/${ARCH} scratch
COPY --from=build /build/bin/torchrun /build/sbom.spdx.json /
USER 65534:65534
ENTRYPOINT ["/torchrun"]
CMD ["--help"]
