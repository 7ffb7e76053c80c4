{{- /* Names, labels and the few facts that several templates share. */ -}}

{{- define "nvdra.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "nvdra.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "nvdra.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "nvdra.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "nvdra.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "nvdra.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "nvdra.instanceLabels" . }}
{{- end -}}

{{- define "nvdra.instanceLabels" -}}
app.kubernetes.io/name: {{ include "nvdra.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* (list root component): the override never replaces the component, so that no two components
       select each other's pods. */ -}}
{{- define "nvdra.selectorLabels" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.selectorLabelsOverride }}
{{- toYaml . }}
{{ end -}}
{{ include "nvdra.name" $root }}-component: {{ index . 1 }}
{{- end -}}

{{- define "nvdra.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{- define "nvdra.serviceAccount" -}}
{{- default (printf "%s-service-account" (include "nvdra.fullname" .)) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "nvdra.controllerAccount" -}}
{{ include "nvdra.serviceAccount" . }}-controller
{{- end -}}

{{- define "nvdra.pluginAccount" -}}
{{ include "nvdra.serviceAccount" . }}-kubeletplugin
{{- end -}}

{{- define "nvdra.daemonAccount" -}}
compute-domain-daemon-service-account
{{- end -}}

{{- define "nvdra.imex" -}}
{{- dig "computeDomains" "imex" dict .Values.resources | toYaml -}}
{{- end -}}

{{- define "nvdra.mode" -}}
{{- dig "computeDomains" "imex" "mode" "" .Values.resources -}}
{{- end -}}

{{- /* "true" or empty */ -}}
{{- define "nvdra.driverManaged" -}}
{{- if eq (include "nvdra.mode" .) "driverManaged" }}true{{ end -}}
{{- end -}}

{{- /* "true" if the controller works on the daemons' objects: it makes them, or removes what is left of them. */ -}}
{{- define "nvdra.managesDaemons" -}}
{{- if or (include "nvdra.driverManaged" .) (dig "computeDomains" "imex" "cleanUpOtherMode" false .Values.resources) }}true{{ end -}}
{{- end -}}

{{- /* "true" if the plugin writes to its own Node object: domain label or clique label. */ -}}
{{- define "nvdra.pluginWritesNode" -}}
{{- if or (include "nvdra.driverManaged" .) .Values.kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled }}true{{ end -}}
{{- end -}}

{{- /* YAML list: the driver's namespace and those of ADDITIONAL_NAMESPACES, each once. */ -}}
{{- define "nvdra.driverNamespaces" -}}
{{- $all := list (include "nvdra.namespace" .) -}}
{{- range .Values.controller.containers.computeDomain.env -}}
{{- if eq .name "ADDITIONAL_NAMESPACES" -}}
{{- range splitList "," (default "" .value) -}}
{{- with trim . }}{{ $all = append $all . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- uniq $all | toYaml -}}
{{- end -}}

{{- define "nvdra.resourceApiVersion" -}}
{{- $found := .Values.resourceApiVersion -}}
{{- range list "v1" "v1beta2" "v1beta1" -}}
{{- $one := printf "resource.k8s.io/%s" . -}}
{{- if and (not $found) ($.Capabilities.APIVersions.Has $one) }}{{ $found = $one }}{{ end -}}
{{- end -}}
{{- $found -}}
{{- end -}}

{{- define "nvdra.featureGates" -}}
{{- range $gate, $on := .Values.featureGates }}{{ $gate }}={{ $on }},{{ end -}}
{{- end -}}

{{- /* Port number of an endpoint such as :8080; empty if it is bound to the loopback address, where
       no probe can reach it. */ -}}
{{- define "nvdra.probePort" -}}
{{- if not (regexMatch "^(localhost|127\\.|\\[::1\\])" .) }}{{ regexFind "[0-9]+$" . }}{{ end -}}
{{- end -}}

{{- /* (dict "chart" list "user" list "owned" dict "where" path): the user's variables replace the
       chart's, except those that belong to a value because other objects depend on it. */ -}}
{{- define "nvdra.env" -}}
{{- $taken := dict -}}
{{- range .user -}}
{{- if hasKey $.owned .name -}}
{{- fail (printf "\n%s must not set %s: use the value %s, because other parts of the chart depend on it." $.where .name (get $.owned .name)) -}}
{{- end -}}
{{- $_ := set $taken .name true -}}
{{- end -}}
{{- $env := list -}}
{{- range .chart -}}
{{- if not (hasKey $taken .name) }}{{ $env = append $env . }}{{ end -}}
{{- end -}}
{{- concat $env (default list .user) | toYaml -}}
{{- end -}}
