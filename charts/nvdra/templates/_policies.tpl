{{- define "nvdra.isPlugin" -}}
request.userInfo.username == 'system:serviceaccount:{{ include "nvdra.namespace" . }}:{{ include "nvdra.pluginAccount" . }}'
{{- end -}}

{{- /* The API server puts the node of the pod that a token is bound to into the user's extra fields. */ -}}
{{- define "nvdra.requesterNode" -}}
request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')
{{- end -}}

{{- /* (list root component ports): egress to the API server and nothing else. */ -}}
{{- define "nvdra.egressPolicy" -}}
{{- $root := index . 0 -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "nvdra.name" $root }}-{{ index . 1 }}
  namespace: {{ include "nvdra.namespace" $root }}
  labels:
    {{- include "nvdra.labels" $root | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "nvdra.selectorLabels" (list $root (index . 1)) | nindent 6 }}
  policyTypes: ["Egress"]
  egress:
  - ports:
    {{- range index . 2 }}
    - protocol: TCP
      port: {{ int . }}
    {{- end }}
{{- end -}}
