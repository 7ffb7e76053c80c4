{{- define "nvdra.pluginEnv" -}}
{{- $owned := dict
  "IMEX_MODE" "resources.computeDomains.imex.mode"
  "IMEX_ISOLATION" "resources.computeDomains.imex.isolation"
  "IMEX_HOST_SOCKET_PATH" "resources.computeDomains.imex.hostSocketPath"
  "FEATURE_GATES" "featureGates"
  "NVIDIA_DRIVER_ROOT" "nvidiaDriverRoot"
  "ALT_PROC_DEVICES_PATH" "altProcDevices"
  "KUBELET_REGISTRAR_DIRECTORY_PATH" "kubeletPlugin.kubeletRegistrarDirectoryPath"
  "KUBELET_PLUGINS_DIRECTORY_PATH" "kubeletPlugin.kubeletPluginsDirectoryPath"
  "HEALTHCHECK_PORT" "kubeletPlugin.containers.computeDomains.healthcheckPort"
  "GPU_CLIQUE_LABEL_ENABLED" "kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled"
  "NAMESPACE" "namespaceOverride" -}}
{{- include "nvdra.env" (dict
  "chart" (include "nvdra.pluginChartEnv" . | fromYamlArray)
  "user" .Values.kubeletPlugin.containers.computeDomains.env
  "owned" $owned
  "where" "kubeletPlugin.containers.computeDomains.env") -}}
{{- end -}}

{{- define "nvdra.pluginChartEnv" -}}
{{- $p := .Values.kubeletPlugin -}}
{{- if $p.metrics.enabled }}
- name: HTTP_ENDPOINT
  value: {{ $p.metrics.computeDomainHttpEndpoint | quote }}
- name: METRICS_PATH
  value: {{ $p.metrics.metricsPath | quote }}
{{- end }}
- name: LOG_VERBOSITY
  value: {{ .Values.logVerbosity | quote }}
- name: MASK_NVIDIA_DRIVER_PARAMS
  value: {{ .Values.maskNvidiaDriverParams | default false | quote }}
- name: NVIDIA_DRIVER_ROOT
  value: {{ .Values.nvidiaDriverRoot | quote }}
- name: NVIDIA_VISIBLE_DEVICES
  value: void
- name: CDI_ROOT
  value: /var/run/cdi
{{- if .Values.altProcDevices }}
- name: ALT_PROC_DEVICES_PATH
  value: /alt-proc-devices
{{- end }}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
- name: NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- with rest (include "nvdra.driverNamespaces" . | fromYamlArray) }}
- name: ADDITIONAL_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.nvidiaCDIHookPath }}
- name: NVIDIA_CDI_HOOK_PATH
  value: {{ . | quote }}
{{- end }}
{{- with include "nvdra.featureGates" . }}
- name: FEATURE_GATES
  value: {{ . | quote }}
{{- end }}
- name: IMEX_MODE
  value: {{ include "nvdra.mode" . }}
- name: IMEX_ISOLATION
  value: {{ dig "computeDomains" "imex" "isolation" "" .Values.resources | quote }}
- name: IMEX_HOST_SOCKET_PATH
  value: {{ dig "computeDomains" "imex" "hostSocketPath" "" .Values.resources | quote }}
- name: KUBELET_REGISTRAR_DIRECTORY_PATH
  value: {{ $p.kubeletRegistrarDirectoryPath | quote }}
- name: KUBELET_PLUGINS_DIRECTORY_PATH
  value: {{ $p.kubeletPluginsDirectoryPath | quote }}
- name: HEALTHCHECK_PORT
  value: {{ $p.containers.computeDomains.healthcheckPort | int | quote }}
- name: GPU_CLIQUE_LABEL_ENABLED
  value: {{ $p.containers.computeDomains.gpuCliqueLabelEnabled | quote }}
{{- end -}}
