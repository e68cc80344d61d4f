{{/* What the schema cannot compare: refused here, in its words, and not by the program in a crash loop. */}}
{{- define "hyperlink.check" -}}
{{- include "hyperlink.checkTimes" .Values.settings -}}
{{- include "hyperlink.checkPool" .Values.settings -}}
{{- include "hyperlink.checkArguments" . -}}
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
