# The trainer for CPUs: launcher, trainer, presets and Fashion-MNIST; no Python.
ARG BASE=debian:bookworm-slim

# The same words in operator, trainer and launcher, so that builders make it once.
FROM ${BASE} AS compiler
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev cmake ninja-build pkg-config \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*

FROM compiler AS libraries
RUN apt-get update \
 && apt-get install -y --no-install-recommends libyaml-dev zlib1g-dev libcurl4-openssl-dev libcjson-dev \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*

FROM libraries AS build
COPY . /source
RUN cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTK_OPERATOR=OFF -DTK_TESTS=OFF -DWITH_CUDA=off \
 && cmake --build /build --target torchrun trainer \
 && strip /build/bin/torchrun /build/bin/trainer

FROM ${BASE} AS image
RUN apt-get update \
 && apt-get install -y --no-install-recommends libyaml-0-2 libcjson1 zlib1g libcurl4 ca-certificates dataset-fashion-mnist \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/* \
        /etc/apt/apt.conf.d/99mmdebstrap /etc/apt/sources.list /var/cache/ldconfig \
 && export SOURCE_DATE_EPOCH=0 && useradd --uid 1000 --user-group --create-home --home-dir /workspace trainer \
 && ln -s torchrun /usr/local/bin/launch
COPY --from=build /build/bin/torchrun /build/bin/trainer /usr/local/bin/

# What is in it (SPDX): Debian's packages and our own files.
FROM image AS listed
COPY deploy/images/sbom-image.sh deploy/images/spdx.awk /
RUN version=$(torchrun --version) \
 && /sbom-image.sh trainer "${version##* }" --file /usr/local/bin/torchrun --file /usr/local/bin/trainer >/sbom.spdx.json

FROM image
COPY --from=listed /sbom.spdx.json /
USER 1000:1000
WORKDIR /workspace
CMD ["torchrun", "--help"]
