#!/usr/bin/env bash
# chart-oci.sh - a packaged Helm chart as an OCI archive, in the form in which `helm push` uploads it. The same chart gives the same bytes.
#
#   scripts/chart-oci.sh NAME-VERSION.tgz FILE.tar
#   skopeo copy --preserve-digests oci-archive:FILE.tar docker://HOST/PATH/NAME:VERSION     then oci://HOST/PATH/NAME is the chart
set -euo pipefail
shopt -s inherit_errexit
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

[ $# -eq 2 ] || die "expected the packaged chart and the file to write"
CHART=$1
LAYOUT=$(mktemp -d)
trap 'rm -rf -- "$LAYOUT"' EXIT
METADATA=$(tar --extract --gzip --to-stdout --file="$CHART" --wildcards --no-wildcards-match-slash '*/Chart.yaml' 2>/dev/null) ||
    die "$CHART is no packaged chart: it has no NAME/Chart.yaml"
readonly CHART LAYOUT METADATA

# field KEY: of Chart.yaml, a plain or a quoted word of one line.
field() { sed -n "s/^$1: *//p" <<<"$METADATA" | sed -e 's/ *#.*//' -e 's/^"\(.*\)"$/\1/' -e "s/^'\(.*\)'\$/\1/"; }

# blob TYPE FILE: puts it into the layout and prints its descriptor, without the closing brace.
blob() {
    local digest
    digest=$(sha256sum <"$2" | cut -d ' ' -f 1)
    cp -- "$2" "$LAYOUT/blobs/sha256/$digest"
    printf '{"mediaType":"%s","digest":"sha256:%s","size":%d' "$1" "$digest" "$(stat -c %s -- "$2")"
}

# config: what a registry shows of the chart. Helm reads Chart.yaml.
config() {
    local key separator='{'
    for key in name version description apiVersion appVersion type kubeVersion; do
        printf '%s"%s":"%s"' "$separator" "$key" "$(field "$key")"
        separator=,
    done
    printf '}'
}

readonly MANIFEST=application/vnd.oci.image.manifest.v1+json
mkdir -p -- "$LAYOUT/blobs/sha256"
config >"$LAYOUT/config"
config=$(blob application/vnd.cncf.helm.config.v1+json "$LAYOUT/config")
layer=$(blob application/vnd.cncf.helm.chart.content.v1.tar+gzip "$CHART")
printf '{"schemaVersion":2,"mediaType":"%s","config":%s},"layers":[%s}],"annotations":{%s}}' "$MANIFEST" "$config" "$layer" \
    "\"org.opencontainers.image.title\":\"$(field name)\",\"org.opencontainers.image.version\":\"$(field version)\"" >"$LAYOUT/manifest"
manifest=$(blob "$MANIFEST" "$LAYOUT/manifest")
printf '{"schemaVersion":2,"manifests":[%s,"annotations":{"org.opencontainers.image.ref.name":"%s"}}]}' "$manifest" "$(field version)" \
    >"$LAYOUT/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$LAYOUT/oci-layout"
pack "$LAYOUT" "$2" blobs index.json oci-layout
