# The launcher alone, for training images of others: one static, position-independent program with musl in an empty image,
# which copies itself to where a job's container finds it, and beside it what it was made of (SPDX).
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS libraries
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc musl-dev cmake ninja-build \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*

FROM libraries AS build
COPY . /source
RUN LDFLAGS=-Wl,-Map=/build/map cmake -S /source -B /build -G Ninja --toolchain /source/cmake/musl.cmake -DCMAKE_BUILD_TYPE=Release \
        -DTK_OPERATOR=OFF -DTK_TRAINER=OFF -DTK_TESTS=OFF -DTK_LAUNCHER=ON -DTK_STATIC=ON \
 && cmake --build /build --target torchrun \
 && strip /build/bin/torchrun \
 && chmod 555 /build/bin/torchrun \
 && version=$(/build/bin/torchrun --version) \
 && /source/deploy/images/sbom.sh /build/bin/torchrun "${version##* }" /build/map /build >/build/sbom.spdx.json

FROM scratch
COPY --from=build /build/bin/torchrun /build/sbom.spdx.json /
USER 65534:65534
ENTRYPOINT ["/torchrun"]
CMD ["--help"]
