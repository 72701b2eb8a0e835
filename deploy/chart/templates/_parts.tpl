{{/* How a manifest of parts/ becomes an object of this release. Objects are maps. The helpers change them in place and print nothing. */}}

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

{{/* torchkeeper.account: the name of the operator's service account. */}}
{{- define "torchkeeper.account" -}}
{{ .Values.serviceAccount.name | default "torchkeeper-operator" }}
{{- end -}}

{{/* torchkeeper.adapt (list $ OBJECT): into its namespace and under the common labels; from the cluster's roles to those of a
     namespace, as deploy/overlays/namespaced does it; what stays the cluster's is named by that namespace, since other releases have
     theirs; bound to the operator's account. */}}
{{- define "torchkeeper.adapt" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- $_ := set $object.metadata "labels" (merge $object.metadata.labels $root.Values.commonLabels) -}}
{{- if hasKey $object.metadata "namespace" -}}
{{- $_ := set $object.metadata "namespace" $root.Release.Namespace -}}
{{- else if and $root.Values.watchNamespace (hasSuffix "-cluster" $object.metadata.name) -}}
{{- range list $object.metadata $object.roleRef -}}
{{- if . -}}
{{- $_ := set . "name" (printf "%s-%s-cluster" (trimSuffix "-cluster" .name) $root.Values.watchNamespace) -}}
{{- end -}}
{{- end -}}
{{- else if $root.Values.watchNamespace -}}
{{- $_ := set $object "kind" (trimPrefix "Cluster" $object.kind) -}}
{{- $_ := set $object.metadata "namespace" $root.Values.watchNamespace -}}
{{- with $object.roleRef -}}
{{- $_ := set . "kind" (trimPrefix "Cluster" .kind) -}}
{{- end -}}
{{- end -}}
{{- range $object.subjects -}}
{{- $_ := set . "namespace" $root.Release.Namespace -}}
{{- $_ := set . "name" (include "torchkeeper.account" $root) -}}
{{- end -}}
{{- end -}}

{{/* torchkeeper.deployment (list $ OBJECT): the values of the operator's pod. */}}
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
{{- $_ := set $container "env" (concat $container.env $values.extraEnv) -}}
{{- $_ := set $container "args" (include "torchkeeper.args" (list $root $container.args) | fromYamlArray) -}}
{{- $_ := set $pod "serviceAccountName" (include "torchkeeper.account" $root) -}}
{{- $template := $spec.template.metadata -}}
{{- $_ := set $template "labels" (merge $template.labels $values.podLabels $values.commonLabels) -}}
{{- with $values.podAnnotations -}}
{{- $_ := set $template "annotations" . -}}
{{- end -}}
{{- $spread := list -}}
{{- range $values.topologySpreadConstraints -}}
{{- $constraint := deepCopy . -}}
{{- if not $constraint.labelSelector -}}
{{- $_ := set $constraint "labelSelector" $spec.selector -}}
{{- end -}}
{{- $spread = append $spread $constraint -}}
{{- end -}}
{{- range $field, $value := dict "imagePullSecrets" $values.images.pullSecrets "nodeSelector" $values.nodeSelector
      "tolerations" $values.tolerations "affinity" $values.affinity "priorityClassName" $values.priorityClassName
      "topologySpreadConstraints" $spread -}}
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
{{- if and (eq $name "--tensorboard-image") (not $root.Values.tensorboard.enabled) -}}
{{- $args = append $args "--tensorboard=false" -}}
{{- else if has $name (list "--tensorboard-image" "--launcher-image") -}}
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
{{- if ne $root.Values.jobs.gangScheduler "none" -}}
{{- $args = append $args (printf "--gang-scheduler=%s" $root.Values.jobs.gangScheduler) -}}
{{- end -}}
{{- if ne $root.Values.logLevel "info" -}}
{{- $args = append $args (printf "--log-level=%s" $root.Values.logLevel) -}}
{{- end -}}
{{- range $name, $value := $root.Values.flags -}}
{{- $args = append $args (printf "--%s=%s" $name ($value | toJson | trimAll "\"")) -}}
{{- end -}}
{{- toYaml $args -}}
{{- end -}}

{{/* torchkeeper.role (list $ ROLE): without the permissions that the values make needless. */}}
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
{{- if not $root.Values.tensorboard.enabled -}}
{{- $unused = append $unused "deployments" -}}
{{- end -}}
{{- $rules := list -}}
{{- range $role.rules -}}
{{- if not (has (first .resources) $unused) -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{- $_ := set $role "rules" $rules -}}
{{- end -}}

{{/* torchkeeper.network-policy (list $ POLICY): its first rule of egress is for the API server. */}}
{{- define "torchkeeper.network-policy" -}}
{{- $ports := list -}}
{{- range (index . 0).Values.networkPolicy.apiPorts -}}
{{- $ports = append $ports (dict "protocol" "TCP" "port" .) -}}
{{- end -}}
{{- $_ := set (first (index . 1).spec.egress) "ports" $ports -}}
{{- end -}}

{{/* torchkeeper.service-account (list $ ACCOUNT): its name and annotations. */}}
{{- define "torchkeeper.service-account" -}}
{{- $root := index . 0 -}}
{{- $metadata := (index . 1).metadata -}}
{{- $_ := set $metadata "name" (include "torchkeeper.account" $root) -}}
{{- with $root.Values.serviceAccount.annotations -}}
{{- $_ := set $metadata "annotations" . -}}
{{- end -}}
{{- end -}}

{{/* torchkeeper.crd (list $ CRD): the annotation by which Helm keeps it. */}}
{{- define "torchkeeper.crd" -}}
{{- if (index . 0).Values.crds.keep -}}
{{- $_ := set (index . 1).metadata "annotations" (dict "helm.sh/resource-policy" "keep") -}}
{{- end -}}
{{- end -}}

{{/* torchkeeper.part (list $ NAME): the objects of parts/NAME.yaml. */}}
{{- define "torchkeeper.part" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $text := $root.Files.Get (printf "parts/%s.yaml" $name) | required (printf "the chart lacks parts/%s.yaml" $name) -}}
{{- $account := printf "serviceaccount:%s:%s" $root.Release.Namespace (include "torchkeeper.account" $root) -}}
{{- $text = replace "serviceaccount:torchkeeper-system:torchkeeper-operator" $account $text -}}
{{- range splitList "\n---\n" $text }}
{{- $object := fromYaml . }}
{{- include "torchkeeper.adapt" (list $root $object) }}
{{- if has $name (list "deployment" "operator-role" "network-policy" "service-account" "crd") }}
{{- include (printf "torchkeeper.%s" (trimPrefix "operator-" $name)) (list $root $object) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end -}}
