{{- define "hyperlink.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "hyperlink.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains (include "hyperlink.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "hyperlink.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* For what no namespace holds: a release of the same name elsewhere has its own. */}}
{{- define "hyperlink.clusterName" -}}
{{ include "hyperlink.fullname" . }}.{{ .Release.Namespace }}
{{- end }}

{{- define "hyperlink.selector" -}}
app.kubernetes.io/name: {{ include "hyperlink.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hyperlink.labels" -}}
{{ include "hyperlink.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ .Values.role | replace "," "-" }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "hyperlink.serviceAccount" -}}
{{- default (ternary (include "hyperlink.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end }}

{{/* Whether hosted clusters on Azure, or on AWS, are served. */}}
{{- define "hyperlink.azure" -}}
{{- if has "azure" (splitList "," .Values.settings.platform) }}true{{ end -}}
{{- end }}

{{- define "hyperlink.aws" -}}
{{- if has "aws" (splitList "," .Values.settings.platform) }}true{{ end -}}
{{- end }}

{{/* Whether clusters of Cluster API are served. */}}
{{- define "hyperlink.capz" -}}
{{- if eq .Values.role "capz" }}true{{ end -}}
{{- end }}

{{/* How the program proves to Azure who it is; empty without Azure, and for role capz, which calls as each cluster's identity. */}}
{{- define "hyperlink.credential" -}}
{{- if and (include "hyperlink.azure" .) (not (include "hyperlink.capz" .)) }}{{ .Values.azure.credential }}{{ end -}}
{{- end }}

{{/* Whether there is a federated token of the pod. */}}
{{- define "hyperlink.federated" -}}
{{- if or (include "hyperlink.capz" .) (eq (include "hyperlink.credential" .) "workload-identity") }}true{{ end -}}
{{- end }}

{{/* Whether the webhook of Azure workload identity brings it. */}}
{{- define "hyperlink.webhook" -}}
{{- if and (include "hyperlink.federated" .) (not .Values.azure.tokenFile) }}true{{ end -}}
{{- end }}

{{/* The flag of a setting: in front of each capital letter a dash. */}}
{{- define "hyperlink.flag" -}}
{{- regexReplaceAll "[A-Z]" . "-${0}" | lower -}}
{{- end }}

{{- define "hyperlink.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The flags of `hyperlink run`, one to a line, as YAML strings. */}}
{{- define "hyperlink.flags" -}}
{{- $ofHo := list "subscription" "resourceGroup" "alsoManage" "natPrefixLength" "natAddressPool" "natSubnetId" "frontendMatch" -}}
{{- $ofAzure := concat $ofHo (list "cloud" "armEndpoint" "authority" "audience") -}}
{{- $ofAws := list "awsRegion" "awsCredentialsFile" "awsEndpointEc2" "awsEndpointElb" "awsEndpointRoute53" "awsEndpointSts" "awsEndpointImds" "nlbMatch" -}}
{{- $idle := list -}}
{{- if not (has "ho" (splitList "," .Values.role)) -}}
{{- $idle = concat $ofHo (list "nlbMatch" "aggregateConditions") -}}
{{- end -}}
{{- if include "hyperlink.capz" . -}}
{{- $idle = concat $idle (list "excludeNamespace" "recordResync") -}}
{{- end -}}
{{- if not (include "hyperlink.azure" .) -}}
{{- $idle = concat $idle $ofAzure -}}
{{- end -}}
{{- if not (include "hyperlink.aws" .) -}}
{{- $idle = append (concat $idle $ofAws) "platform" -}}
{{- end -}}
{{ printf "--role=%s" .Values.role | quote }}
{{- with .Values.namespace }}
{{ printf "--namespace=%s" . | quote }}
{{- end }}
{{- if include "hyperlink.allowScopes" . }}
"--allow-scopes=/etc/hyperlink/allow-scopes/allow-scopes.yaml"
{{- end }}
{{- if .Values.managementScopes }}
"--management-scopes=/etc/hyperlink/management-scopes/management-scopes.yaml"
{{- end }}
{{- with include "hyperlink.credential" . }}
"--credential={{ . }}"
{{- end }}
{{- if include "hyperlink.capz" . }}
{{ printf "--management-cluster-name=%s" .Values.capz.managementCluster.name | quote }}
{{ printf "--management-cluster-namespace=%s" .Values.capz.managementCluster.namespace | quote }}
{{- range .Values.capz.gates }}
{{ printf "--azure-cluster-gates=%s" . | quote }}
{{- end }}
{{- if .Values.capz.deleteDroppedEndpoints }}
"--delete-dropped-endpoints=true"
{{- end }}
{{- end }}
"--probe-bind=0.0.0.0:8081"
{{- with .Values.metrics }}
{{- if .enabled }}
"--metrics-bind=0.0.0.0:{{ .port }}"
"--metrics-secure=true"
{{- if .certificate.secretName }}
"--metrics-cert-file=/etc/hyperlink/metrics/tls.crt"
"--metrics-key-file=/etc/hyperlink/metrics/tls.key"
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{- if not (has $name $idle) }}
{{- $flag := include "hyperlink.flag" $name }}
{{- if kindIs "slice" $value }}
{{- range $value }}
{{ printf "--%s=%s" $flag . | quote }}
{{- end }}
{{- else if ne (toString $value) "" }}
{{ printf "--%s=%v" $flag $value | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- range .Values.extraArgs }}
{{ . | quote }}
{{- end }}
{{- end }}

{{/* The ConfigMap of the allowed scopes, if there is one. */}}
{{- define "hyperlink.allowScopes" -}}
{{- if .Values.allowScopes.configMap -}}
{{ .Values.allowScopes.configMap }}
{{- else if .Values.allowScopes.hostedClusters -}}
{{ include "hyperlink.fullname" . }}-allow-scopes
{{- end -}}
{{- end }}

{{/* {"namespaced": […], "everywhere": […]}: the rules of the shipped roles by where they are bound. With one namespace,
HostedClusters, their NodePools and Events, namespace kube-system and the infrastructure's name are elsewhere all the same; and
for role capz the management cluster, identities and the lease of the operator whose place it takes. */}}
{{- define "hyperlink.rules" -}}
{{- $namespaced := list -}}
{{- $everywhere := list -}}
{{- $ofHo := list "hostedclusters" "hostedclusters/status" "nodepools" "events" "namespaces" "infrastructures" -}}
{{- range $role := splitList "," .Values.role -}}
{{- $files := list -}}
{{- if include "hyperlink.azure" $ -}}
{{- $files = append $files (printf "files/role-%s.yaml" $role) -}}
{{- if and (eq $role "cpo") (not $.Values.namespace) -}}
{{- $files = append $files "files/role-cpo-many.yaml" -}}
{{- end -}}
{{- end -}}
{{- if include "hyperlink.aws" $ -}}
{{- $files = append $files (printf "files/role-%s-aws.yaml" $role) -}}
{{- if and (eq $role "cpo") (not $.Values.namespace) -}}
{{- $files = append $files "files/role-cpo-many-aws.yaml" -}}
{{- end -}}
{{- end -}}
{{- if and (eq $role "capz") $.Values.capz.gates -}}
{{- $files = append $files "files/role-capz-gates.yaml" -}}
{{- end -}}
{{- if and (eq $role "ho") $.Values.settings.aggregateConditions -}}
{{- $files = append $files "files/role-ho-aggregate.yaml" -}}
{{- end -}}
{{- range $files -}}
{{- range ($.Files.Get . | fromYaml).rules -}}
{{- $elsewhere := eq $role "capz" -}}
{{- range .resources -}}
{{- $elsewhere = or $elsewhere (and (eq $role "ho") (has . $ofHo)) -}}
{{- end -}}
{{- if or (not $.Values.namespace) $elsewhere -}}
{{- $everywhere = append $everywhere . -}}
{{- else -}}
{{- $namespaced = append $namespaced . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "namespaced" $namespaced "everywhere" $everywhere | toJson -}}
{{- end }}

{{/* {"rules": […]}: the shipped role for the lease, with the names of this installation's leases. */}}
{{- define "hyperlink.leaseRules" -}}
{{- $names := list -}}
{{- range $part := include "hyperlink.parts" . | fromJsonArray -}}
{{- $names = concat $names (include "hyperlink.leaseNames" (dict "root" $ "part" $part) | fromJsonArray) -}}
{{- end -}}
{{- $rules := list -}}
{{- range (.Files.Get "files/role-lease.yaml" | fromYaml).rules -}}
{{- $rules = append $rules (ternary (merge (dict "resourceNames" $names) .) . (hasKey . "resourceNames")) -}}
{{- end -}}
{{- dict "rules" $rules | toJson -}}
{{- end }}

{{/* ["ho", "ho-aws", …]: the roles, each on each platform. Every one has a lease. */}}
{{- define "hyperlink.parts" -}}
{{- $parts := list -}}
{{- range $role := splitList "," .Values.role -}}
{{- if include "hyperlink.azure" $ -}}
{{- $parts = append $parts $role -}}
{{- end -}}
{{- if include "hyperlink.aws" $ -}}
{{- $parts = append $parts (printf "%s-aws" $role) -}}
{{- end -}}
{{- end -}}
{{- toJson $parts -}}
{{- end }}

{{- define "hyperlink.leaseName" -}}
hyperlink-{{ .part }}
{{- with .root.Values.namespace }}{{ if ne . $.root.Release.Namespace }}-{{ . }}{{ end }}{{ end -}}
{{- end }}

{{/* The names of the leases of one of these: the one that all shards hold together, and one for each shard. */}}
{{- define "hyperlink.leaseNames" -}}
{{- $name := include "hyperlink.leaseName" . -}}
{{- $names := list $name -}}
{{- range include "hyperlink.shards" .root | fromJsonArray -}}
{{- with .number -}}
{{- $names = append $names (printf "%s.shard-%v" $name .) -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{/* [{"number": 1, "label": "…"}, …]: the shards; a number and a label have only those among several. */}}
{{- define "hyperlink.shards" -}}
{{- $shards := list -}}
{{- range $index := until (int .Values.shards) -}}
{{- $number := ternary 0 (add1 $index) (eq (int $.Values.shards) 1) -}}
{{- $label := ternary "" (printf "hyperlink.hypershift.openshift.io/shard: %q" (toString $number)) (eq $number 0) -}}
{{- $shards = append $shards (dict "number" $number "label" $label) -}}
{{- end -}}
{{- toJson $shards -}}
{{- end }}

{{- define "hyperlink.subjects" -}}
- kind: ServiceAccount
  name: {{ include "hyperlink.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
