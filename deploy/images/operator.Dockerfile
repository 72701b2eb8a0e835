# The operator: one static, position-independent program in an empty image, and beside it what it was made of (SPDX). With
# PROGRAM=kubectl-ptj that program instead, in an image to be unpacked.
ARG BASE=debian:bookworm-slim
ARG PROGRAM=ptj-operator

# The same words in operator, trainer and launcher, so that builders make it once.
FROM ${BASE} AS compiler
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev cmake ninja-build pkg-config \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*

# Debian has no static libcurl without Kerberos and LDAP, and no static cJSON: both are built here from Debian's own
# sources, so its security fixes are in them.
FROM compiler AS libraries
RUN if [ -f /etc/apt/sources.list.d/debian.sources ]; then \
        sed -i 's/^Types: deb$/Types: deb deb-src/' /etc/apt/sources.list.d/debian.sources; \
    else \
        sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/etc/apt/sources.list.d/sources.list; \
    fi \
 && apt-get update \
 && apt-get install -y --no-install-recommends dpkg-dev libssl-dev zlib1g-dev libyaml-dev \
 && mkdir /src && cd /src \
 && apt-get source -y curl cjson \
 && export CFLAGS="-O2 -g0 -fPIE -ffunction-sections -fdata-sections -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2" \
 && cmake -S cjson-*/ -B /src/build-cjson -G Ninja -DBUILD_SHARED_LIBS=OFF -DENABLE_CJSON_TEST=OFF -DENABLE_CUSTOM_COMPILER_FLAGS=OFF \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
 && cmake --build /src/build-cjson && cmake --install /src/build-cjson \
 && cmake -S curl-*/ -B /src/build-curl -G Ninja -DBUILD_SHARED_LIBS=OFF -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DHTTP_ONLY=ON -DCURL_USE_OPENSSL=ON -DOPENSSL_USE_STATIC_LIBS=ON -DCURL_ZLIB=ON \
        -DZLIB_LIBRARY="$(gcc -print-file-name=libz.a)" -DENABLE_THREADED_RESOLVER=ON -DENABLE_MANUAL=OFF -DCURL_BROTLI=OFF \
        -DCURL_ZSTD=OFF -DUSE_NGHTTP2=OFF -DUSE_LIBIDN2=OFF -DCURL_USE_LIBSSH2=OFF -DCURL_DISABLE_ALTSVC=ON -DCURL_DISABLE_HSTS=ON \
        -DCURL_DISABLE_NETRC=ON -DCURL_DISABLE_NTLM=ON -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none \
 && cmake --build /src/build-curl && cmake --install /src/build-curl \
 && for name in curl cjson; do \
        echo "lib$name.a $name $(dpkg-parsechangelog -l $name-*/debian/changelog -S Version)" >>/usr/local/share/sources; \
    done \
 && rm -rf /src /var/lib/apt/lists/* /var/cache/apt/*

FROM libraries AS build
ARG PROGRAM
COPY . /source
RUN cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTK_TRAINER=OFF -DTK_TESTS=OFF -DTK_STATIC=ON \
        -DCMAKE_EXE_LINKER_FLAGS=-Wl,-Map=/build/map \
 && cmake --build /build --target "$PROGRAM" \
 && strip "/build/bin/$PROGRAM" \
 && version=$("/build/bin/$PROGRAM" --version) \
 && /source/deploy/images/sbom.sh "/build/bin/$PROGRAM" "${version##* }" /build/map /build /usr/local/share/sources >/build/sbom.spdx.json

FROM scratch
ARG PROGRAM
COPY --from=build /build/bin/${PROGRAM} /build/sbom.spdx.json /
USER 65534:65534
EXPOSE 8080 8081
ENTRYPOINT ["/ptj-operator"]
