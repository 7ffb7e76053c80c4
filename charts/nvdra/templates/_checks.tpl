{{- /* What cannot work is refused here, with a sentence that says what to set. Types and unknown
       names are the business of values.schema.json. */ -}}

{{- /* "true" if ComputeDomains are installed. Every template asks this first, so every rendering is
       checked. */ -}}
{{- define "nvdra.enabled" -}}
{{- include "nvdra.checkRelease" . -}}
{{- include "nvdra.checkForeign" . -}}
{{- if .Values.resources.computeDomains.enabled -}}
{{- include "nvdra.checkCluster" . -}}
{{- include "nvdra.checkImex" . -}}
{{- include "nvdra.checkImexConfig" . -}}
{{- include "nvdra.checkController" . -}}
{{- include "nvdra.checkEndpoint" (list "kubeletPlugin.metrics.computeDomainHttpEndpoint" .Values.kubeletPlugin.metrics.computeDomainHttpEndpoint) -}}
true
{{- end -}}
{{- end -}}

{{- define "nvdra.checkRelease" -}}
{{- if hasKey .Values.AsMap "namespace" -}}
{{- fail "\nThe value \"namespace\" does not exist: choose the namespace with --namespace (and --create-namespace)." -}}
{{- end -}}
{{- if hasKey .Values.AsMap "nvidiaCtkPath" -}}
{{- fail "\nThe value \"nvidiaCtkPath\" is no longer supported: remove it." -}}
{{- end -}}
{{- if and (eq (include "nvdra.namespace" .) "default") (not .Values.namespaceOverride) (not .Values.allowDefaultNamespace) -}}
{{- fail "\nInstalling into the namespace \"default\" is not recommended: add --create-namespace --namespace NAME, or permit it with --set allowDefaultNamespace=true." -}}
{{- end -}}
{{- end -}}

{{- /* Parts of the original chart that nvdra does not have. */ -}}
{{- define "nvdra.checkForeign" -}}
{{- $gpus := dig "gpus" "enabled" "unset" .Values.resources -}}
{{- if eq (toString $gpus) "true" -}}
{{- fail "\nresources.gpus.enabled=true: nvdra has no plugin for gpu.nvidia.com. Set resources.gpus.enabled=false, or leave it unset, and install the GPU driver from its own chart." -}}
{{- end -}}
{{- if and .Values.gpuResourcesEnabledOverride (ne (toString $gpus) "false") -}}
{{- fail "\ngpuResourcesEnabledOverride=true asks for gpu.nvidia.com, for which nvdra has no plugin. Leave it out, or say resources.gpus.enabled=false as well." -}}
{{- end -}}
{{- if .Values.webhook.enabled -}}
{{- fail (printf "\nwebhook.enabled=true: the admission webhook is not part of nvdra %s. Set webhook.enabled=false; faulty claims are then refused when a node prepares them." .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "nvdra.checkCluster" -}}
{{- if not (include "nvdra.resourceApiVersion" .) -}}
{{- fail "\nThis cluster does not offer Dynamic Resource Allocation: none of resource.k8s.io/v1, resource.k8s.io/v1beta2 and resource.k8s.io/v1beta1 is served. Enable it, or name the version with the value resourceApiVersion." -}}
{{- end -}}
{{- end -}}

{{- define "nvdra.checkImex" -}}
{{- $imex := include "nvdra.imex" . | fromYaml -}}
{{- $gates := default dict .Values.featureGates -}}
{{- $beta := dig "AllBeta" true $gates -}}
{{- $mode := get $imex "mode" | toString -}}
{{- $isolation := get $imex "isolation" | toString -}}
{{- if not (has $mode (list "driverManaged" "hostManaged")) -}}
{{- fail (printf "\nresources.computeDomains.imex.mode is %q: it must be \"driverManaged\" or \"hostManaged\"." $mode) -}}
{{- end -}}
{{- if and (eq $mode "hostManaged") (ne (get $gates "HostManagedIMEXDaemon" | toString) "true") -}}
{{- fail "\nresources.computeDomains.imex.mode=hostManaged requires the feature gate HostManagedIMEXDaemon: add --set featureGates.HostManagedIMEXDaemon=true." -}}
{{- end -}}
{{- if and (eq $mode "driverManaged") (dig "ComputeDomainCliques" $beta $gates) (not (dig "IMEXDaemonsWithDNSNames" $beta $gates)) -}}
{{- fail "\nThe feature gate ComputeDomainCliques requires IMEXDaemonsWithDNSNames: to switch that off, add --set featureGates.ComputeDomainCliques=false." -}}
{{- end -}}
{{- if eq $isolation "channel" -}}
{{- fail "\nresources.computeDomains.imex.isolation=channel is not supported yet: use \"domain\"." -}}
{{- end -}}
{{- if not (has $isolation (list "" "domain")) -}}
{{- fail (printf "\nresources.computeDomains.imex.isolation is %q: the isolations are \"domain\" and \"channel\", and \"channel\" is not supported yet." $isolation) -}}
{{- end -}}
{{- $socket := get $imex "hostSocketPath" | toString -}}
{{- if and (eq $mode "hostManaged") (or (not (hasPrefix "/" $socket)) (has ".." (splitList "/" $socket))) -}}
{{- fail (printf "\nresources.computeDomains.imex.hostSocketPath is %q: it must be an absolute path without \"..\", the one that IMEX_CMD_UNIX_DOMAIN_PATH names in the host service's configuration." $socket) -}}
{{- end -}}
{{- end -}}

{{- define "nvdra.checkImexConfig" -}}
{{- $where := "resources.computeDomains.imex.config" -}}
{{- /* The same list as the controller's and the daemons'. */ -}}
{{- $computed := list "BIND_INTERFACE_IP" "DAEMONIZE" "IMEX_CMD_BIND_INTERFACE_IP" "IMEX_CMD_ENABLED" "IMEX_CMD_PORT" "IMEX_CMD_UNIX_DOMAIN_PATH" "IMEX_NODE_CONFIG_FILE" "SERVER_PORT" -}}
{{- range $key, $value := dig "computeDomains" "imex" "config" dict .Values.resources -}}
{{- if has (trim $key) $computed -}}
{{- fail (printf "\n%s.%s is computed by the driver: remove it." $where $key) -}}
{{- end -}}
{{- if or (not (trim $key)) (regexMatch "[,=\\r\\n]" $key) (regexMatch "[,\\r\\n]" (toString $value)) -}}
{{- fail (printf "\n%s: %q = %q cannot be passed on; names are not empty and have no comma, equals sign or line break, values no comma or line break." $where $key (toString $value)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "nvdra.checkController" -}}
{{- $c := .Values.controller -}}
{{- if and (gt (int $c.replicas) 1) (not $c.leaderElection.enabled) -}}
{{- fail (printf "\ncontroller.replicas=%d without leader election would run several controllers against each other: add --set controller.leaderElection.enabled=true." (int $c.replicas)) -}}
{{- end -}}
{{- include "nvdra.checkEndpoint" (list "controller.metrics.httpEndpoint" $c.metrics.httpEndpoint) -}}
{{- end -}}

{{- /* (list path endpoint) */ -}}
{{- define "nvdra.checkEndpoint" -}}
{{- if not (regexMatch "^(\\[[0-9a-fA-F:.]+\\]|[^][:]*):[1-9][0-9]{0,4}$" (index . 1)) -}}
{{- fail (printf "\n%s is %q: it must be an address and a port, for example \":8080\"." (index . 0) (index . 1)) -}}
{{- end -}}
{{- end -}}
