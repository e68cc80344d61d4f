{{- define "hyperlink.environment" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
{{- $credential := include "hyperlink.credential" . }}
{{- with .Values.azure }}
{{- if eq $credential "secret-file" }}
- name: AZURE_CREDENTIALS_FILE
  value: {{ printf "/etc/azure-provider/%s" .secret.key }}
{{- else if and $credential (or .tokenFile (eq $credential "managed-identity")) }}
{{- with .clientId }}
- name: AZURE_CLIENT_ID
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- if and .tokenFile (include "hyperlink.federated" $) }}
{{- with .tenantId }}
- name: AZURE_TENANT_ID
  value: {{ . | quote }}
{{- end }}
- name: AZURE_FEDERATED_TOKEN_FILE
  value: {{ .tokenFile | quote }}
{{- end }}
{{- end }}
{{- if include "hyperlink.awsSecret" . }}
- name: AWS_SHARED_CREDENTIALS_FILE
  value: {{ printf "/etc/provider/%s" .Values.aws.secret.key }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The Secret with the credentials file of AWS, if there is one. */}}
{{- define "hyperlink.awsSecret" -}}
{{- if include "hyperlink.aws" . }}{{ .Values.aws.secret.name }}{{ end -}}
{{- end }}

{{/* For whom the pods have a token of their ServiceAccount. */}}
{{- define "hyperlink.awsAudience" -}}
{{- if include "hyperlink.aws" . }}{{ .Values.aws.tokenAudience }}{{ end -}}
{{- end }}

{{- define "hyperlink.mounts" -}}
{{- $mounts := list -}}
{{- if eq (include "hyperlink.credential" .) "secret-file" -}}
{{- $mounts = append $mounts (dict "name" "azure-credentials" "mountPath" "/etc/azure-provider" "readOnly" true) -}}
{{- end -}}
{{- if include "hyperlink.awsSecret" . -}}
{{- $mounts = append $mounts (dict "name" "aws-credentials" "mountPath" "/etc/provider" "readOnly" true) -}}
{{- end -}}
{{- if include "hyperlink.awsAudience" . -}}
{{- $mounts = append $mounts (dict "name" "aws-token" "mountPath" "/var/run/secrets/openshift/serviceaccount" "readOnly" true) -}}
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
{{- if eq (include "hyperlink.credential" .) "secret-file" -}}
{{- $volumes = append $volumes (dict "name" "azure-credentials" "secret" (dict "secretName" .Values.azure.secret.name)) -}}
{{- end -}}
{{- with include "hyperlink.awsSecret" . -}}
{{- $volumes = append $volumes (dict "name" "aws-credentials" "secret" (dict "secretName" .)) -}}
{{- end -}}
{{- with include "hyperlink.awsAudience" . -}}
{{- $token := dict "audience" . "expirationSeconds" 3600 "path" "token" -}}
{{- $volumes = append $volumes (dict "name" "aws-token" "projected" (dict "sources" (list (dict "serviceAccountToken" $token)))) -}}
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
