{{- /* Documents of a base, as a YAML list: its resources and their labels, its ConfigMaps and its patches. */ -}}
{{- define "deniable.base" -}}
{{- $files := .files -}}
{{- $base := .base -}}
{{- $made := $files.Get (printf "%s/kustomization.yaml" $base) | fromYaml -}}
{{- $documents := list -}}
{{- range $resource := $made.resources -}}
  {{- if hasPrefix "../" $resource -}}
    {{- $of := printf "%s/%s" (dir $base) (trimPrefix "../" $resource) -}}
    {{- $documents = concat $documents (include "deniable.base" (dict "files" $files "base" $of) | fromYamlArray) -}}
  {{- else -}}
    {{- range regexSplit "(?m)^---$" ($files.Get (printf "%s/%s" $base $resource)) -1 -}}
      {{- $documents = append $documents (fromYaml .) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- range $made.configMapGenerator -}}
  {{- $data := dict -}}
  {{- range .literals -}}{{- $_ := set $data (splitn "=" 2 .)._0 (splitn "=" 2 .)._1 -}}{{- end -}}
  {{- $map := dict "apiVersion" "v1" "kind" "ConfigMap" "metadata" (dict "name" .name) "data" $data -}}
  {{- $documents = append $documents $map -}}
{{- end -}}
{{- range $label := $made.labels -}}
  {{- range $document := $documents -}}
    {{- $metas := list $document.metadata -}}
    {{- with dig "spec" "template" "metadata" "" $document -}}{{- $metas = append $metas . -}}{{- end -}}
    {{- range $metas -}}{{- $_ := set . "labels" (merge dict $label.pairs (.labels | default dict)) -}}{{- end -}}
  {{- end -}}
{{- end -}}
{{- range $made.patches -}}
  {{- $operations := $files.Get (printf "%s/%s" $base .path) | fromYamlArray -}}
  {{- include "deniable.patch" (dict "documents" $documents "target" .target "operations" $operations) -}}
{{- end -}}
{{- toYaml $documents -}}
{{- end -}}

{{- /* Apply operations of JSON Patch in place: add (to a map, or at the end of a list), replace, remove. */ -}}
{{- define "deniable.patch" -}}
{{- range $document := .documents -}}
  {{- if and (eq $document.kind $.target.kind) (has $.target.name (list nil $document.metadata.name)) -}}
    {{- range $operation := $.operations -}}
      {{- $keys := rest (splitList "/" $operation.path) -}}
      {{- $node := $document -}}
      {{- $parent := $document -}}
      {{- range initial $keys -}}
        {{- $parent = $node -}}
        {{- if kindIs "slice" $node -}}{{- $node = index $node (int .) -}}{{- else -}}{{- $node = get $node . -}}{{- end -}}
      {{- end -}}
      {{- if eq (last $keys) "-" -}}
        {{- $_ := set $parent (last (initial $keys)) (append $node $operation.value) -}}
      {{- else if eq $operation.op "remove" -}}
        {{- $_ := unset $node (last $keys) -}}
      {{- else -}}
        {{- $_ := set $node (last $keys) $operation.value -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}
