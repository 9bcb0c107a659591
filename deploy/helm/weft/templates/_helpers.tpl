{{/* The image of all containers. */}}
{{- define "weft.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The ClusterConfiguration of kubeadm in the cluster, as YAML; empty without one, or without a cluster. */}}
{{- define "weft.kubeadm" -}}
{{- with lookup "v1" "ConfigMap" "kube-system" "kubeadm-config" }}{{ index .data "ClusterConfiguration" }}{{ end }}
{{- end }}

{{/* HOST:PORT of the API server, as kubeadm tells new nodes; empty without kubeadm, or without a cluster. */}}
{{- define "weft.clusterInfo" -}}
{{- with lookup "v1" "ConfigMap" "kube-public" "cluster-info" }}
{{- range (index .data "kubeconfig" | fromYaml | dig "clusters" list) }}{{ (urlParse .cluster.server).host }}{{ end }}
{{- end }}
{{- end }}

{{/* The name of kube-proxy's ConfigMap if weft reads its settings there. */}}
{{- define "weft.kubeProxy" -}}
{{- if ne .Values.kubeProxyConfigMap "auto" }}{{ .Values.kubeProxyConfigMap }}
{{- else if and (not .Values.apiServer.host) (lookup "v1" "ConfigMap" "kube-system" "kube-proxy") }}kube-proxy
{{- end }}
{{- end }}

{{/* HOST:PORT of the API server; empty if kube-proxy's ConfigMap says it. */}}
{{- define "weft.apiServer" -}}
{{- /* kubeadm has an endpoint in its configuration only where --control-plane-endpoint was given. */}}
{{- $endpoint := include "weft.kubeadm" . | fromYaml | dig "controlPlaneEndpoint" "" | default (include "weft.clusterInfo" . | trim) }}
{{- if .Values.apiServer.host }}{{ .Values.apiServer.host }} {{ .Values.apiServer.port }}
{{- else if include "weft.kubeProxy" . }}
{{- else if $endpoint }}{{ regexReplaceAll ":[0-9]+$" $endpoint "" | trimAll "[]" }} {{ regexFind "[0-9]+$" (regexFind ":[0-9]+$" $endpoint) | default "6443" }}
{{- else }}{{ fail "apiServer.host is empty, and the cluster has neither kube-proxy's ConfigMap nor one of kubeadm that names an endpoint: set apiServer.host to an address of the API server that every node reaches without a Service (on k3s: --set apiServer.host=127.0.0.1 --set apiServer.port=6444)" }}
{{- end }}
{{- end }}

{{/* The prefixes of all pods, if they are known: one CIDR, or one of each family. */}}
{{- define "weft.clusterCIDR" -}}
{{- $byte := "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])" }}
{{- $v4 := printf "^(%[1]s\\.){3}%[1]s/(3[0-2]|[12]?[0-9])$" $byte }}
{{- $h := "[0-9a-fA-F]{1,4}" }}
{{- $v6 := printf "^((%[1]s:){7}%[1]s|(%[1]s:){1,7}:|(%[1]s:){1,6}:%[1]s|(%[1]s:){1,5}(:%[1]s){1,2}|(%[1]s:){1,4}(:%[1]s){1,3}|(%[1]s:){1,3}(:%[1]s){1,4}|(%[1]s:){1,2}(:%[1]s){1,5}|%[1]s:(:%[1]s){1,6}|:((:%[1]s){1,7}|:))/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$" $h }}
{{- with .Values.clusterCIDR | default (include "weft.kubeadm" . | fromYaml | dig "networking" "podSubnet" "") }}
{{- $families := dict }}
{{- range splitList "," . }}
{{- $family := ternary "IPv4" (ternary "IPv6" "" (regexMatch $v6 .)) (regexMatch $v4 .) }}
{{- if not $family }}{{ fail (printf "clusterCIDR: %q is not a CIDR: give an address and a prefix length, such as 10.244.0.0/16 or fd00:10:244::/56" .) }}{{ end }}
{{- if hasKey $families $family }}{{ fail (printf "clusterCIDR: %q is the second %s prefix: give one CIDR, or one of each family" . $family) }}{{ end }}
{{- $_ := set $families $family . }}
{{- end }}
{{- . }}
{{- end }}
{{- end }}

{{/* The arguments from values for a container, its last ones: a flag that is given twice has the last value. */}}
{{- define "weft.extraArgs" -}}
{{- $args := get .root.Values.extraArgs .name | default list }}
{{- if and .root.Values.logLevel (ne .name "hold") }}{{ $args = prepend $args (printf "--log-level=%s" .root.Values.logLevel) }}{{ end }}
{{- with $args }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* Fails if extraArgs has arguments for a container that these values do not make. */}}
{{- define "weft.checkExtraArgs" -}}
{{- $names := eq .Values.mode "single" | ternary (list "single") (list "aggregator" "services") }}
{{- if and .Values.networkPolicy.enabled (eq .Values.mode "split") }}{{ $names = append $names "policy" }}{{ end }}
{{- if .Values.hostSettings.enabled }}{{ $names = append $names "hostSettings" }}{{ end }}
{{- if .Values.hold.enabled }}{{ $names = append $names "hold" }}{{ end }}
{{- range $name, $args := .Values.extraArgs }}
{{- if and $args (not (has $name $names)) }}{{ fail (printf "extraArgs.%s: these values make no such container, only %s" $name (join ", " $names)) }}{{ end }}
{{- end }}
{{- end }}

{{/* What the pods of both DaemonSets have from values. */}}
{{- define "weft.podSpec" -}}
tolerations:
  {{- toYaml .Values.tolerations | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The address on loopback, and that of all interfaces. */}}
{{- define "weft.loopback" -}}{{ if eq .Values.ipFamilies "ipv6" }}::1{{ else }}127.0.0.1{{ end }}{{- end }}
{{- define "weft.any" -}}{{ if eq .Values.ipFamilies "ipv4" }}0.0.0.0{{ else }}[::]{{ end }}{{- end }}
{{- define "weft.local" -}}{{ if eq .Values.ipFamilies "ipv6" }}[::1]{{ else }}127.0.0.1{{ end }}{{- end }}

{{/* The host of /metrics. */}}
{{- define "weft.metricsHost" -}}
{{- regexReplaceAll ":[0-9]+$" .Values.metricsBindAddress "" | default (include "weft.local" .) }}
{{- end }}

{{/* The arguments of what follows Services. */}}
{{- define "weft.proxyArgs" -}}
- --hostname-override=$(NODE_NAME)
{{- if include "weft.kubeProxy" . }}
# The settings of kube-proxy, and where the API server is.
- --config=/var/lib/kube-proxy/config.conf
{{- else }}
{{- with include "weft.clusterCIDR" . }}
- --cluster-cidr={{ . }}
{{- else }}
# What comes from the podCIDRs of this Node comes from pods.
- --detect-local-mode=NodeCIDR
{{- end }}
- --metrics-bind-address={{ include "weft.metricsHost" . }}:10249
- --healthz-bind-address={{ include "weft.any" . }}:10256
{{- end }}
{{- if ne .Values.serviceMetrics.counters "service" }}
- --service-counters={{ .Values.serviceMetrics.counters }}
{{- end }}
{{- if .Values.serviceMetrics.activeConnections }}
- --service-active-connections
{{- end }}
{{- end }}

{{/* The environment of what follows the API. */}}
{{- define "weft.env" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- if not (include "weft.kubeProxy" .) }}
# In place of the kubelet's: see the ConfigMap.
- name: KUBERNETES_SERVICE_HOST
  valueFrom:
    configMapKeyRef: {name: weft, key: api-server-host}
- name: KUBERNETES_SERVICE_PORT
  valueFrom:
    configMapKeyRef: {name: weft, key: api-server-port}
{{- end }}
{{- end }}

{{/* The files of what follows the API. */}}
{{- define "weft.apiMounts" -}}
- name: api-access
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- if include "weft.kubeProxy" . }}
- name: kube-proxy
  mountPath: /var/lib/kube-proxy
  readOnly: true
{{- end }}
{{- end }}

{{/* The probes on a port. */}}
{{- define "weft.probes" -}}
livenessProbe:
  httpGet:
    host: {{ include "weft.loopback" .root | quote }}
    path: /livez
    port: {{ .port }}
  initialDelaySeconds: 10
  periodSeconds: 10
  failureThreshold: 6
# {{ .ready }}
readinessProbe:
  {{- if .root.Values.migration.enabled }}
  # Beside kube-proxy the port is kube-proxy's.
  exec:
    command: [/weft, get, status, --ready]
  {{- else }}
  httpGet:
    host: {{ include "weft.loopback" .root | quote }}
    path: /readyz
    port: {{ .port }}
  {{- end }}
  periodSeconds: 3
{{- end }}

{{/* What a container may ask of the kernel, in its securityContext. The pod's is RuntimeDefault. */}}
{{- define "weft.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  {{- if .kernel }}
  # nftables and conntrack, and nothing else.
  add: [NET_ADMIN]
  {{- end }}
{{- if hasKey . "uid" }}
# A user of its own, which the configuration names. The group is the socket's, so that the
# aggregator's container may ask it.
runAsUser: {{ .uid }}
runAsGroup: {{ include "weft.socketGroup" $.root }}
{{- end }}
{{- with .root.Values }}
{{- if eq .seccomp.type "Localhost" }}
# A file of the node: without it the container does not start.
seccompProfile:
  type: Localhost
  localhostProfile: {{ replace "NAME" $.name .seccomp.localhostProfile }}
{{- end }}
{{- if .appArmor.enabled }}
# A profile of the node: without it the container does not start.
appArmorProfile:
  type: Localhost
  localhostProfile: {{ eq $.name "weft" | ternary "weft" (printf "weft-%s" $.name) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The gid of the socket: all containers of the pod are members. Empty in mode "single" without one. */}}
{{- define "weft.socketGroup" -}}
{{- .Values.socketGroup | default (dig "socketGroup" (eq .Values.mode "split" | ternary 64500 "") .Values.configuration) }}
{{- end }}

{{/* The uid of the NetworkPolicy frontend: only root may connect to the runtime's NRI socket. */}}
{{- define "weft.policyUID" -}}{{ .Values.networkPolicy.nri | ternary 0 64502 }}{{- end }}

{{/* The uid of the Service frontend: only root may connect to the kubelet's socket. */}}
{{- define "weft.servicesUID" -}}{{ .Values.kubeletPods.enabled | ternary 0 64501 }}{{- end }}

{{/* The mount of the kubelet's Pods API. */}}
{{- define "weft.podsMount" -}}
{{- if .Values.kubeletPods.enabled }}
# The directory, which has only the socket, and not the socket, which the kubelet makes anew when it restarts.
- name: kubelet-pods
  mountPath: /var/lib/kubelet/pods-api
  readOnly: true
{{- end }}
{{- end }}

{{/* The configuration: in split mode also the frontends, each with what it uses, unless configuration names them. */}}
{{- define "weft.configuration" -}}
{{- $c := merge (deepCopy .Values.configuration) (dict "apiVersion" "weft.dev/v1alpha1" "kind" "Configuration") }}
{{- if eq .Values.mode "split" }}
{{- $own := list (dict "name" "services" "match" (dict "uid" (include "weft.servicesUID" . | int)) "system" true "flows" .Values.serviceMetrics.activeConnections "allow" (dict
  "tables" (list (dict "name" "weft")) "families" (list "ip" "ip6") "hooks" (list "prerouting" "input" "forward" "output" "postrouting") "nat" true "masqueradeMark" true)) }}
{{- if .Values.networkPolicy.enabled }}
{{- $own = append $own (dict "name" "policy" "match" (dict "uid" (include "weft.policyUID" . | int)) "system" true "flows" true "allow" (dict
  "tables" (list (dict "name" "weft-policy")) "families" (list "ip" "ip6" "bridge") "hooks" (list "prerouting" "input" "forward" "output"))) }}
{{- end }}
{{- $given := dig "publishers" list $c }}
{{- $names := list }}
{{- range $given }}{{ $names = append $names .name }}{{ end }}
{{- $all := list }}
{{- range $own }}{{ if not (has .name $names) }}{{ $all = append $all . }}{{ end }}{{ end }}
{{- $_ := set $c "publishers" (concat $all $given) }}
{{- $c = merge $c (dict "socketGroup" (include "weft.socketGroup" . | int)) }}
{{- end }}
{{- toYaml $c }}
{{- end }}
