{{- define "nvdra.controllerEnv" -}}
{{- $owned := dict
  "IMEX_MODE" "resources.computeDomains.imex.mode"
  "IMEX_ISOLATION" "resources.computeDomains.imex.isolation"
  "CLEAN_UP_OTHER_MODE" "resources.computeDomains.imex.cleanUpOtherMode"
  "CD_DAEMON_ROLL_OUT" "resources.computeDomains.imex.rollOutDaemons"
  "CD_DAEMON_RESOURCES_JSON" "daemon.resources"
  "FEATURE_GATES" "featureGates"
  "HTTP_ENDPOINT" "controller.metrics.httpEndpoint"
  "LEADER_ELECTION_ENABLED" "controller.leaderElection.enabled"
  "LEADER_ELECTION_LEASE_LOCK_NAME" "nameOverride"
  "LEADER_ELECTION_LEASE_LOCK_NAMESPACE" "namespaceOverride"
  "LEADER_ELECTION_LEASE_DURATION" "controller.leaderElection.leaseDuration"
  "LEADER_ELECTION_RENEW_DEADLINE" "controller.leaderElection.renewDeadline"
  "LEADER_ELECTION_RETRY_PERIOD" "controller.leaderElection.retryPeriod"
  "NAMESPACE" "namespaceOverride" -}}
{{- include "nvdra.env" (dict
  "chart" (include "nvdra.controllerChartEnv" . | fromYamlArray)
  "user" .Values.controller.containers.computeDomain.env
  "owned" $owned
  "where" "controller.containers.computeDomain.env") -}}
{{- end -}}

{{- define "nvdra.controllerChartEnv" -}}
{{- $c := .Values.controller -}}
# The probes need the endpoint, so it is there without metrics too; an empty path means no metrics.
- name: HTTP_ENDPOINT
  value: {{ $c.metrics.httpEndpoint | quote }}
- name: METRICS_PATH
  value: {{ ternary $c.metrics.metricsPath "" $c.metrics.enabled | quote }}
- name: PPROF_PATH
  value: {{ ternary $c.metrics.profilePath "" $c.metrics.enabled | quote }}
- name: LOG_VERBOSITY
  value: {{ .Values.logVerbosity | quote }}
- name: LOG_VERBOSITY_CD_DAEMON
  value: {{ .Values.logVerbosity | quote }}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: IMAGE_NAME
  value: {{ include "nvdra.image" . | quote }}
{{- if .Values.imagePullSecrets }}
- name: CD_DAEMON_IMAGE_PULL_SECRET_NAMES
  value: {{ range $i, $secret := .Values.imagePullSecrets }}{{ if $i }},{{ end }}{{ $secret.name }}{{ end }}
{{- end }}
- name: NVIDIA_VISIBLE_DEVICES
  value: void
{{- with include "nvdra.featureGates" . }}
- name: FEATURE_GATES
  value: {{ . | quote }}
{{- end }}
- name: IMEX_MODE
  value: {{ include "nvdra.mode" . }}
- name: IMEX_ISOLATION
  value: {{ dig "computeDomains" "imex" "isolation" "" .Values.resources | quote }}
{{- if dig "computeDomains" "imex" "cleanUpOtherMode" false .Values.resources }}
- name: CLEAN_UP_OTHER_MODE
  value: "true"
{{- end }}
{{- if include "nvdra.driverManaged" . }}
{{- if dig "computeDomains" "imex" "rollOutDaemons" false .Values.resources }}
- name: CD_DAEMON_ROLL_OUT
  value: "true"
{{- end }}
{{- with $c.priorityClassName }}
- name: CD_DAEMON_PRIORITY_CLASS_NAME
  value: {{ . | quote }}
{{- end }}
{{- with .Values.daemon.resources }}
- name: CD_DAEMON_RESOURCES_JSON
  value: {{ toJson . | quote }}
{{- end }}
{{- with dig "computeDomains" "imex" "config" dict .Values.resources }}
- name: IMEX_CONFIG_OVERRIDES
  value: "{{ range $key, $value := . }}{{ $key }}={{ $value }},{{ end }}"
{{- end }}
{{- end }}
- name: LEADER_ELECTION_ENABLED
  value: {{ $c.leaderElection.enabled | quote }}
- name: LEADER_ELECTION_LEASE_LOCK_NAME
  value: {{ include "nvdra.name" . }}-controller
- name: LEADER_ELECTION_LEASE_LOCK_NAMESPACE
  value: {{ include "nvdra.namespace" . }}
- name: LEADER_ELECTION_LEASE_DURATION
  value: {{ $c.leaderElection.leaseDuration | quote }}
- name: LEADER_ELECTION_RENEW_DEADLINE
  value: {{ $c.leaderElection.renewDeadline | quote }}
- name: LEADER_ELECTION_RETRY_PERIOD
  value: {{ $c.leaderElection.retryPeriod | quote }}
{{- end -}}
