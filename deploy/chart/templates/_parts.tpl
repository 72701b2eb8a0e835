{{/* How a manifest of parts/ becomes an object of this release. Objects are maps, changed in place; such helpers print nothing. */}}

{{/* torchkeeper.image (list $ NAME): the image of that name in .Values.images. */}}
{{- define "torchkeeper.image" -}}
{{- $root := index . 0 -}}
{{- $image := index $root.Values.images (index . 1) -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* torchkeeper.place (list $ OBJECT): into its namespace, and from the cluster's roles to those of a namespace, as
     deploy/overlays/namespaced does it. */}}
{{- define "torchkeeper.place" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- if hasKey $object.metadata "namespace" -}}
{{- $_ := set $object.metadata "namespace" $root.Release.Namespace -}}
{{- else if $root.Values.watchNamespace -}}
{{- $_ := set $object "kind" (trimPrefix "Cluster" $object.kind) -}}
{{- $_ := set $object.metadata "namespace" $root.Values.watchNamespace -}}
{{- with $object.roleRef -}}
{{- $_ := set . "kind" (trimPrefix "Cluster" .kind) -}}
{{- end -}}
{{- end -}}
{{- range $object.subjects -}}
{{- $_ := set . "namespace" $root.Release.Namespace -}}
{{- end -}}
{{- end -}}

{{/* torchkeeper.deployment (list $ OBJECT): what the values say of the operator's pod. */}}
{{- define "torchkeeper.deployment" -}}
{{- $root := index . 0 -}}
{{- $values := $root.Values -}}
{{- $spec := (index . 1).spec -}}
{{- $pod := $spec.template.spec -}}
{{- $container := index $pod.containers 0 -}}
{{- $_ := set $spec "replicas" $values.replicas -}}
{{- $_ := set $container "image" (include "torchkeeper.image" (list $root "operator")) -}}
{{- $_ := set $container "imagePullPolicy" $values.images.pullPolicy -}}
{{- $_ := set $container "resources" (mergeOverwrite $container.resources (deepCopy $values.resources)) -}}
{{- $_ := set $container "args" (include "torchkeeper.args" (list $root $container.args) | fromYamlArray) -}}
{{- range $field, $value := dict "imagePullSecrets" $values.images.pullSecrets "nodeSelector" $values.nodeSelector
      "tolerations" $values.tolerations "affinity" $values.affinity -}}
{{- if $value -}}
{{- $_ := set $pod $field $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* torchkeeper.args (list $ ARGS): the manifest's arguments, with the images and flags of the values, as a list in YAML. */}}
{{- define "torchkeeper.args" -}}
{{- $root := index . 0 -}}
{{- $args := list -}}
{{- with $root.Values.watchNamespace -}}
{{- $args = append $args (printf "--namespace=%s" .) -}}
{{- end -}}
{{- range index . 1 -}}
{{- $name := regexFind "^--[a-z-]+" . -}}
{{- if has $name (list "--tensorboard-image" "--launcher-image") -}}
{{- $image := trimPrefix "--" $name | trimSuffix "-image" -}}
{{- $args = append $args (printf "%s=%s" $name (include "torchkeeper.image" (list $root $image))) -}}
{{- else -}}
{{- $args = append $args . -}}
{{- end -}}
{{- end -}}
{{- if not $root.Values.jobs.networkPolicy -}}
{{- $args = append $args "--isolate-jobs=false" -}}
{{- end -}}
{{- with $root.Values.jobs.scraperNamespace -}}
{{- $args = append $args (printf "--scraper-namespace=%s" .) -}}
{{- end -}}
{{- if not $root.Values.jobs.keys -}}
{{- $args = append $args "--job-keys=false" -}}
{{- end -}}
{{- if ne $root.Values.logLevel "info" -}}
{{- $args = append $args (printf "--log-level=%s" $root.Values.logLevel) -}}
{{- end -}}
{{- range $name, $value := $root.Values.flags -}}
{{- $args = append $args (printf "--%s=%s" $name (toJson $value)) -}}
{{- end -}}
{{- toYaml $args -}}
{{- end -}}

{{/* torchkeeper.role (list $ ROLE): without the rights that the values make needless. */}}
{{- define "torchkeeper.role" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $unused := list -}}
{{- if not $root.Values.jobs.networkPolicy -}}
{{- $unused = append $unused "networkpolicies" -}}
{{- end -}}
{{- if not $root.Values.jobs.keys -}}
{{- $unused = append $unused "secrets" -}}
{{- end -}}
{{- $rules := list -}}
{{- range $role.rules -}}
{{- if not (has (first .resources) $unused) -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{- $_ := set $role "rules" $rules -}}
{{- end -}}

{{/* torchkeeper.part (list $ NAME): the objects of parts/NAME.yaml. */}}
{{- define "torchkeeper.part" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $text := $root.Files.Get (printf "parts/%s.yaml" $name) | required (printf "the chart lacks parts/%s.yaml" $name) -}}
{{- range splitList "\n---\n" $text }}
{{- $object := fromYaml . }}
{{- include "torchkeeper.place" (list $root $object) }}
{{- if eq $name "deployment" }}
{{- include "torchkeeper.deployment" (list $root $object) }}
{{- else if eq $name "operator-role" }}
{{- include "torchkeeper.role" (list $root $object) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end -}}
