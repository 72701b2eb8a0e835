# The trainer for NVIDIA GPUs, and for CPUs where there is none: as trainer.Dockerfile, with the code for GPUs, cuBLAS
# (which loads NVRTC) and NCCL. The driver is the node's; its container runtime brings it in.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS libraries
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc g++ libc6-dev cmake ninja-build pkg-config libyaml-dev zlib1g-dev \
        libcurl4-openssl-dev libcjson-dev ca-certificates python3 python3-pip \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
COPY cmake/cuda-wheels.txt /source/cmake/
COPY scripts/cuda-kit.py /source/scripts/
ARG PIP_INDEX_URL=
# The secret "ca" is the certificate bundle of a machine behind a proxy that intercepts TLS; without it the build uses the image's own.
RUN --mount=type=secret,id=ca,target=/run/ca.crt \
    if [ -s /run/ca.crt ]; then export PIP_CERT=/run/ca.crt SSL_CERT_FILE=/run/ca.crt; fi; \
    if [ -z "$PIP_INDEX_URL" ]; then unset PIP_INDEX_URL; fi; \
    /source/scripts/cuda-kit.py compiler /cuda && /source/scripts/cuda-kit.py libraries /cuda-libraries \
 && mkdir /used \
 && for name in cublasLt nvrtc nvrtc-builtins nccl; do mv /cuda-libraries/lib/lib$name.so.* /used/ || exit; done \
 && rm -rf /cuda-libraries

FROM libraries AS build
COPY . /source
RUN cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTK_OPERATOR=OFF -DTK_TESTS=OFF -DWITH_CUDA=on \
        -DTK_CUDA_KIT=/cuda \
 && cmake --build /build --target torchrun trainer tk_cuda \
 && strip /build/bin/torchrun /build/bin/trainer /build/bin/libtk_cuda.so

FROM ${BASE} AS image
RUN apt-get update \
 && apt-get install -y --no-install-recommends libyaml-0-2 libcjson1 zlib1g libcurl4 libstdc++6 ca-certificates dataset-fashion-mnist \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/* \
        /etc/apt/apt.conf.d/99mmdebstrap /etc/apt/sources.list /var/cache/ldconfig \
 && export SOURCE_DATE_EPOCH=0 && useradd --uid 1000 --user-group --create-home --home-dir /workspace trainer \
 && ln -s torchrun /usr/local/bin/launch
COPY --from=libraries /used /usr/local/lib/torchkeeper/
COPY --from=build /build/bin/libtk_cuda.so /usr/local/lib/torchkeeper/
COPY --from=build /build/bin/torchrun /build/bin/trainer /usr/local/bin/

# What is in it (SPDX): Debian's packages, NVIDIA's wheels (the runtime is linked into our library), our own files.
FROM image AS listed
COPY deploy/images/sbom-image.sh deploy/images/spdx.awk cmake/cuda-wheels.txt /
RUN version=$(torchrun --version) \
 && /sbom-image.sh trainer-cuda "${version##* }" --file /usr/local/bin/torchrun --file /usr/local/bin/trainer \
        --file /usr/local/lib/torchkeeper/libtk_cuda.so --wheels /cuda-wheels.txt nvidia-cuda-runtime \
        --wheels /cuda-wheels.txt nvidia-cublas --wheels /cuda-wheels.txt nvidia-cuda-nvrtc \
        --wheels /cuda-wheels.txt nvidia-nccl-cu13 >/sbom.spdx.json

FROM image
COPY --from=listed /sbom.spdx.json /
# What the nodes' container runtime goes by.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 1000:1000
WORKDIR /workspace
CMD ["torchrun", "--help"]
