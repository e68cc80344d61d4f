{{- define "hyperlink.environment" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
{{- with .Values.azure }}
{{- if eq .credential "secret-file" }}
- name: AZURE_CREDENTIALS_FILE
  value: {{ printf "/etc/azure-provider/%s" .secret.key }}
{{- else if or .tokenFile (eq .credential "managed-identity") }}
{{- with .clientId }}
- name: AZURE_CLIENT_ID
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- if and .tokenFile (eq .credential "workload-identity") }}
- name: AZURE_TENANT_ID
  value: {{ .tenantId | quote }}
- name: AZURE_FEDERATED_TOKEN_FILE
  value: {{ .tokenFile | quote }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "hyperlink.mounts" -}}
{{- $mounts := list -}}
{{- if eq .Values.azure.credential "secret-file" -}}
{{- $mounts = append $mounts (dict "name" "azure-credentials" "mountPath" "/etc/azure-provider" "readOnly" true) -}}
{{- end -}}
{{- if include "hyperlink.allowScopes" . -}}
{{- $mounts = append $mounts (dict "name" "allow-scopes" "mountPath" "/etc/hyperlink/allow-scopes" "readOnly" true) -}}
{{- end -}}
{{- if .Values.managementScopes -}}
{{- $mounts = append $mounts (dict "name" "management-scopes" "mountPath" "/etc/hyperlink/management-scopes" "readOnly" true) -}}
{{- end -}}
{{- if and .Values.metrics.enabled .Values.metrics.certificate.secretName -}}
{{- $mounts = append $mounts (dict "name" "metrics-certificate" "mountPath" "/etc/hyperlink/metrics" "readOnly" true) -}}
{{- end -}}
{{- with concat $mounts .Values.extraVolumeMounts -}}
{{- toYaml . -}}
{{- end -}}
{{- end }}

{{/* Whole volumes, no subPath: what changes in them reaches the running program. */}}
{{- define "hyperlink.volumes" -}}
{{- $volumes := list -}}
{{- if eq .Values.azure.credential "secret-file" -}}
{{- $volumes = append $volumes (dict "name" "azure-credentials" "secret" (dict "secretName" .Values.azure.secret.name)) -}}
{{- end -}}
{{- with include "hyperlink.allowScopes" . -}}
{{- $volumes = append $volumes (dict "name" "allow-scopes" "configMap" (dict "name" .)) -}}
{{- end -}}
{{- if .Values.managementScopes -}}
{{- $name := printf "%s-management-scopes" (include "hyperlink.fullname" .) -}}
{{- $volumes = append $volumes (dict "name" "management-scopes" "configMap" (dict "name" $name)) -}}
{{- end -}}
{{- if and .Values.metrics.enabled .Values.metrics.certificate.secretName -}}
{{- $volumes = append $volumes (dict "name" "metrics-certificate" "secret" (dict "secretName" .Values.metrics.certificate.secretName)) -}}
{{- end -}}
{{- with concat $volumes .Values.extraVolumes -}}
{{- toYaml . -}}
{{- end -}}
{{- end }}
