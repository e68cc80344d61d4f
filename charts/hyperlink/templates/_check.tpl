{{/* What the schema cannot compare: refused here, in its words, and not by the program in a crash loop. */}}
{{- define "hyperlink.check" -}}
{{- include "hyperlink.checkTimes" .Values.settings -}}
{{- include "hyperlink.checkPool" .Values.settings -}}
{{- include "hyperlink.checkArguments" . -}}
{{- include "hyperlink.checkRole" . -}}
{{- $excluded := concat .Values.allowScopes.excludeNamespaces .Values.settings.excludeNamespace -}}
{{- if has .Values.namespace $excluded -}}
{{- fail (printf "at '/namespace': %s is excluded, and the release is for it alone" .Values.namespace) -}}
{{- end -}}
{{- if and .Values.metrics.enabled (eq (int .Values.metrics.port) 8081) -}}
{{- fail "at '/metrics/port': 8081 is the port of the probes" -}}
{{- end -}}
{{- end }}

{{/* A duration of the schema's form in milliseconds. */}}
{{- define "hyperlink.milliseconds" -}}
{{- $units := dict "h" 3600000 "m" 60000 "s" 1000 "ms" 1 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+[a-z]+" . -1 -}}
{{- $sum = add $sum (mul (regexFind "[0-9]+" . | atoi) (get $units (regexFind "[a-z]+" .))) -}}
{{- end -}}
{{- $sum -}}
{{- end }}

{{- define "hyperlink.checkTimes" -}}
{{- $times := dict -}}
{{- range $name := list "resync" "recordResync" "leaseDuration" "leaseRenewDeadline" "leaseRetry" -}}
{{- $text := get $ $name -}}
{{- $time := include "hyperlink.milliseconds" $text | atoi -}}
{{- if gt $time 604800000 -}}
{{- fail (printf "at '/settings/%s': %s is longer than a week" $name $text) -}}
{{- end -}}
{{- $_ := set $times $name $time -}}
{{- end -}}
{{- range list (list "leaseRenewDeadline" "leaseDuration") (list "leaseRetry" "leaseRenewDeadline") -}}
{{- $short := first . -}}
{{- $long := last . -}}
{{- if ge (get $times $short) (get $times $long) -}}
{{- fail (printf "at '/settings/%s': %s must be shorter than %s, %s" $short (get $ $short) $long (get $ $long)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "hyperlink.checkPool" -}}
{{- with .natAddressPool -}}
{{- $length := splitList "/" . | last | atoi -}}
{{- if gt $length (int $.natPrefixLength) -}}
{{- fail (printf "at '/settings/natAddressPool': %s has no room for a subnet of natPrefixLength %v" . $.natPrefixLength) -}}
{{- end -}}
{{- $address := 0 -}}
{{- range splitList "/" . | first | splitList "." -}}
{{- $address = add (mul $address 256) (atoi .) -}}
{{- end -}}
{{- $size := 1 -}}
{{- range until (sub 32 $length | int) -}}
{{- $size = mul $size 2 -}}
{{- end -}}
{{- if mod $address $size -}}
{{- fail (printf "at '/settings/natAddressPool': %s is an address in a network; write the network" .) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Rights, volumes and ports go by the values: a flag beside them would not have them. */}}
{{- define "hyperlink.checkArguments" -}}
{{- $own := dict -}}
{{- range list "role" "namespace" "allowScopes" "managementScopes" -}}
{{- $_ := set $own (include "hyperlink.flag" .) . -}}
{{- end -}}
{{- range list "bind" "secure" "cert-file" "key-file" -}}
{{- $_ := set $own (printf "metrics-%s" .) "metrics" -}}
{{- end -}}
{{- range list "name" "namespace" -}}
{{- $_ := set $own (printf "management-cluster-%s" .) (printf "capz.managementCluster.%s" .) -}}
{{- end -}}
{{- $_ := set $own "azure-cluster-gates" "capz.gates" -}}
{{- $_ := set $own "delete-dropped-endpoints" "capz.deleteDroppedEndpoints" -}}
{{- $_ := set $own "credential" "azure.credential" -}}
{{- $_ := set $own "shard" "shards" -}}
{{- range keys .Values.settings -}}
{{- $_ := set $own (include "hyperlink.flag" .) (printf "settings.%s" .) -}}
{{- end -}}
{{- range $index, $argument := .Values.extraArgs -}}
{{- $flag := splitList "=" $argument | first | trimPrefix "--" -}}
{{- if eq $flag "probe-bind" -}}
{{- fail (printf "at '/extraArgs/%d': the probes of the pods are on port 8081" $index) -}}
{{- end -}}
{{- with get $own $flag -}}
{{- fail (printf "at '/extraArgs/%d': --%s is for the value %s to say" $index $flag .) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Role capz and the others have values of their own. One at its default is taken: it has no effect. */}}
{{- define "hyperlink.checkRole" -}}
{{- if include "hyperlink.capz" . -}}
{{- $identities := "each AzureClusterIdentity says it for its clusters" -}}
{{- $others := "it is of roles ho and cpo" -}}
{{- $settings := dict "excludeNamespace" list "recordResync" "45m" "subscription" "" "resourceGroup" "" "alsoManage" list
  "natPrefixLength" 28 "natAddressPool" "" "natSubnetId" "" "frontendMatch" "name" "aggregateConditions" false "awsRegion" ""
  "awsCredentialsFile" "" "awsEndpointEc2" "" "awsEndpointElb" "" "awsEndpointRoute53" "" "awsEndpointSts" ""
  "awsEndpointImds" "" "nlbMatch" "uid" -}}
{{- with .Values -}}
{{- range list
  (list "" . (dict "shards" 1) "one process decides for all clusters")
  (list "" . (dict "managementScopes" list) $others)
  (list "/azure" .azure (dict "credential" "workload-identity" "clientId" "" "tenantId" "") $identities)
  (list "/azure/secret" .azure.secret (dict "name" "" "key" "credentials") $identities)
  (list "/aws" .aws (dict "tokenAudience" "" "instanceMetadata" false) $others)
  (list "/aws/secret" .aws.secret (dict "name" "" "key" "credentials") $others)
  (list "/allowScopes" .allowScopes (dict "hostedClusters" list "excludeNamespaces" list "configMap" "") $others)
  (list "/crds" .crds (dict "install" false) $others)
  (list "/settings" .settings (dict "platform" "azure") "its clusters are on Azure")
  (list "/settings" .settings $settings $others) -}}
{{- include "hyperlink.checkDefaults" (append . "capz") -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- $capz := "it is of role capz" -}}
{{- range list
  (list "/capz" .Values.capz (dict "gates" list "identityNamespaces" list "instanceMetadata" false
    "deleteDroppedEndpoints" false) $capz)
  (list "/capz/managementCluster" .Values.capz.managementCluster (dict "name" "" "namespace" "") $capz) -}}
{{- include "hyperlink.checkDefaults" (append . $.Values.role) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* [path, values, {name: default}, why, role]: each of these values has to be its default. */}}
{{- define "hyperlink.checkDefaults" -}}
{{- $path := index . 0 -}}
{{- $values := index . 1 -}}
{{- $why := index . 3 -}}
{{- $role := index . 4 -}}
{{- range $name, $default := index . 2 -}}
{{- if ne (get $values $name | toJson) (toJson $default) -}}
{{- fail (printf "at '%s/%s': role %s does not take it: %s" $path $name $role $why) -}}
{{- end -}}
{{- end -}}
{{- end }}
