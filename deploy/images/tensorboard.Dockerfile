# The real TensorBoard, from PyPI, pinned by hash; runs as nobody and writes nothing.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS python
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/* /var/cache/ldconfig

FROM python AS wheels
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-pip
COPY deploy/images/tensorboard.requirements.txt /requirements.txt
ARG PIP_INDEX_URL=
# The secret "ca" is the certificate bundle of a machine behind a proxy that intercepts TLS; without it the build uses the image's own.
RUN --mount=type=secret,id=ca,target=/run/ca.crt \
    if [ -s /run/ca.crt ]; then export PIP_CERT=/run/ca.crt; fi; \
    if [ -z "$PIP_INDEX_URL" ]; then unset PIP_INDEX_URL; fi; \
    pip install --no-cache-dir --no-compile --disable-pip-version-check --root-user-action=ignore \
        --require-hashes --only-binary=:all: --target /opt/tensorboard -r /requirements.txt
# Tests and headers are dead weight; byte code is made here once, since nobody may write it later. It is never checked
# against its source: image builders change the dates of files.
RUN cd /opt/tensorboard \
 && rm -rf bin setuptools/tests numpy/_core/include numpy/_core/lib numpy/f2py/src numpy/random/lib numpy/typing/tests \
 && find . -depth \( -name tests -o -name test -o -name testdata \) -type d -exec rm -rf {} + \
 && find . \( -name '*.pyi' -o -name '*.pxd' -o -name '*.c' -o -name '*.h' -o -name '*.proto' -o -name '*_test.py' \) -delete \
 && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash .

FROM python AS image
RUN rm -f /etc/apt/apt.conf.d/99mmdebstrap /etc/apt/sources.list \
 && printf '#!/bin/sh\nexec python3 -m tensorboard.main "$@"\n' >/usr/local/bin/tensorboard \
 && chmod 755 /usr/local/bin/tensorboard
COPY --from=wheels /opt/tensorboard /opt/tensorboard

# What is in it (SPDX): Debian's packages and PyPI's wheels.
FROM image AS listed
COPY deploy/images/sbom-image.sh deploy/images/spdx.awk /
RUN version=$(ls -d /opt/tensorboard/tensorboard-*.dist-info) && version=${version##*/tensorboard-} \
 && /sbom-image.sh tensorboard "${version%.dist-info}" --dists /opt/tensorboard >/sbom.spdx.json

FROM image
COPY --from=listed /sbom.spdx.json /
ENV PYTHONPATH=/opt/tensorboard PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/tmp
USER 65534:65534
EXPOSE 6006
ENTRYPOINT ["tensorboard"]
CMD ["--help"]
