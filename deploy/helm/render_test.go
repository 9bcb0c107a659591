package helm

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// host is the value that every rendering without a cluster needs.
var host = map[string]any{"host": "192.0.2.10"}

// weft renders the chart, and returns the file of weft.
func weft(t *testing.T, values map[string]any) []byte {
	t.Helper()
	values = maps.Clone(values)
	values["apiServer"] = host
	files, err := Render(values, engine.Engine{Strict: true})
	must(t, err)
	return files[WeftFile]
}

var write = flag.Bool("write", false, "write the manifests of all variants into deploy/kubernetes")

// TestManifests compares the files of all variants with the chart's result.
func TestManifests(t *testing.T) {
	variants, err := Variants()
	must(t, err)
	want := map[string]string{}
	for _, v := range variants {
		files, err := Manifests(v)
		must(t, err)
		for name, text := range files {
			want[filepath.Join(manifestsDir, v, name)] = string(text)
		}
	}
	if *write {
		for path, text := range want {
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))  //nolint:gosec // of a repository
			must(t, os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // of a repository
		}
	}
	files, err := filepath.Glob(filepath.Join(manifestsDir, "*", "*.yaml"))
	must(t, err)
	for _, path := range files {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is of no variant: remove it, or add one to deploy/helm/variants", path)
		}
	}
	for path, text := range want {
		if have, err := os.ReadFile(path); err != nil || string(have) != text {
			t.Errorf("%s is not what the chart makes (%v): run make generate", path, err)
		}
	}
}

// TestLint requires a clean helm lint.
func TestLint(t *testing.T) {
	result := lint.All(chartDir, map[string]any{"apiServer": host}, "kube-system", true)
	for _, m := range result.Messages {
		// An icon would be loaded from elsewhere.
		if m.Severity > support.InfoSev {
			t.Error(m)
		}
	}
}

// An unknown or misspelt field is an error.
func objects(t *testing.T, text []byte) (out []runtime.Object) {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for i, doc := range strings.Split(string(text), "\n---\n") {
		o, _, err := decoder.Decode([]byte(doc), nil, nil)
		if runtime.IsMissingKind(err) && i == 0 {
			continue // the comment
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		out = append(out, o)
	}
	return out
}

func daemonSet(t *testing.T, text []byte) *appsv1.DaemonSet {
	t.Helper()
	var found *appsv1.DaemonSet
	for _, o := range objects(t, text) {
		if set, ok := o.(*appsv1.DaemonSet); ok {
			if found != nil {
				t.Fatal("two DaemonSets: a node would run weft twice")
			}
			found = set
		}
	}
	if found == nil {
		t.Fatal("no DaemonSet")
	}
	return found
}

// TestRefused has clear errors for values that cannot work.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		values map[string]any
		want   string
	}{
		{map[string]any{"apiServer": map[string]any{}}, "apiServer.host is empty, and the cluster has neither"},
		{map[string]any{"podMonitor": map[string]any{"enabled": true}}, "podMonitor.enabled needs metricsBindAddress"},
		{map[string]any{"migration": map[string]any{"enabled": true}}, "migration.enabled needs mode: single"},
		{map[string]any{"clusterCidr": "10.0.0.0/8"}, "clusterCidr"},
		{map[string]any{"clusterCIDR": "10.244.0.0/33"}, `clusterCIDR: "10.244.0.0/33" is not a CIDR: give an address and a prefix length`},
		{map[string]any{"clusterCIDR": "10.244.0.0/16,10.245.0.0/16"}, `clusterCIDR: "10.245.0.0/16" is the second IPv4 prefix`},
		{map[string]any{"kubeProxyConfigMap": "kube-proxy", "clusterCIDR": "fd00::/129"}, "is not a CIDR"},
		{map[string]any{"extraArgs": []any{"--takeover"}}, "extraArgs"},
		{map[string]any{"extraArgs": map[string]any{"weft": []any{"--takeover"}}}, "weft"},
		{map[string]any{"extraArgs": map[string]any{"services": []any{"takeover"}}}, "extraArgs"},
		{map[string]any{"extraArgs": map[string]any{"single": []any{"--takeover"}}}, "extraArgs.single: these values make no such container, only aggregator, services, hostSettings"},
		{map[string]any{"logLevel": "trace"}, "logLevel"},
		{map[string]any{"imagePullSecrets": []any{"registry"}}, "imagePullSecrets"},
		{map[string]any{"podAnnotations": map[string]any{"a": 1}}, "podAnnotations"},
		{map[string]any{"apiServer": map[string]any{"host": "https://192.0.2.10"}}, "host"},
		{map[string]any{"mode": "double"}, "mode"},
		{map[string]any{"serviceMetrics": map[string]any{"counters": "all"}}, "counters"},
		{map[string]any{"seccomp": map[string]any{"type": "Unconfined"}}, "seccomp"},
		{map[string]any{"seccomp": map[string]any{"localhostProfile": "weft.json"}}, "localhostProfile"},
	} {
		if _, ok := tt.values["apiServer"]; !ok {
			tt.values["apiServer"] = host
		}
		if _, err := Render(tt.values, engine.Engine{Strict: true}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.values, err, tt.want)
		}
	}
}

// TestPodMonitor: each container of a PodMonitor has the port.
func TestPodMonitor(t *testing.T) {
	for mode, want := range map[string][]string{"split": {"metrics", "aggregator", "policy"}, "single": {"metrics"}} {
		on := map[string]any{"enabled": true}
		file := weft(t, map[string]any{"mode": mode, "networkPolicy": on, "podMonitor": on, "metricsBindAddress": "[::]:10249"})
		text, monitor, ok := strings.Cut(string(file), "---\napiVersion: monitoring.coreos.com/v1\n")
		if !ok {
			t.Fatalf("%s: no PodMonitor", mode)
		}
		have := make(map[string]bool)
		for _, c := range daemonSet(t, []byte(text)).Spec.Template.Spec.Containers {
			for _, p := range c.Ports {
				have[p.Name] = slices.Contains(c.Args, fmt.Sprintf("--metrics-bind-address=[::]:%d", p.ContainerPort))
			}
		}
		if got := strings.Count(monitor, "- port: "); got != len(want) || len(have) != len(want) {
			t.Errorf("%s: the PodMonitor has %d ports, the containers %v; want %v", mode, got, have, want)
		}
		for _, name := range want {
			if !have[name] || !strings.Contains(monitor, "- port: "+name+"\n") {
				t.Errorf("%s: port %s is not in both the PodMonitor and a container that listens: %v\n%s", mode, name, have, monitor)
			}
		}
	}
}

// TestHold: the holder is on weft's nodes, has no rights, and an update does not replace it.
func TestHold(t *testing.T) {
	file := weft(t, map[string]any{"hold": map[string]any{"enabled": true}})
	i := strings.LastIndex(string(file), "---\n")
	weft, hold := daemonSet(t, file[:i]).Spec, daemonSet(t, file[i:]).Spec
	pod, container := hold.Template.Spec, hold.Template.Spec.Containers[0]
	if hold.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType || !pod.HostNetwork || *pod.AutomountServiceAccountToken || pod.PriorityClassName != weft.Template.Spec.PriorityClassName {
		t.Errorf("the holder is %+v", hold)
	}
	if c := container.SecurityContext.Capabilities; len(c.Add) > 0 || !slices.Equal(c.Drop, []corev1.Capability{"ALL"}) || *pod.SecurityContext.RunAsUser != *weft.Template.Spec.SecurityContext.RunAsUser {
		t.Errorf("the rights of the holder are %+v", container.SecurityContext)
	}
	run := func(v corev1.Volume) bool { return v.Name == "run" }
	a, b := slices.IndexFunc(pod.Volumes, run), slices.IndexFunc(weft.Template.Spec.Volumes, run)
	if pod.Volumes[a].HostPath.Path != weft.Template.Spec.Volumes[b].HostPath.Path || !slices.Contains(container.Args, "--socket="+pod.Volumes[a].HostPath.Path+"/hold.sock") {
		t.Errorf("the holder listens elsewhere: %v, %v", container.Args, pod.Volumes)
	}
}

// cluster is an API server with ConfigMaps of kube-system, for helm.
func cluster(t *testing.T, maps map[string]map[string]string) engine.Engine {
	t.Helper()
	reply := func(w http.ResponseWriter, o any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(o) // the reader is this process
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}}})
	})
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/configmaps/{name}", func(w http.ResponseWriter, r *http.Request) {
		data, ok := maps[r.PathValue("name")]
		// Nodes may read this one before they have joined.
		ok = ok && (r.PathValue("namespace") == "kube-public") == (r.PathValue("name") == "cluster-info")
		if !ok {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: 404})
			return
		}
		reply(w, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: r.PathValue("name"), Namespace: "kube-system"}, Data: data})
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	e := engine.New(&rest.Config{Host: srv.URL})
	e.Strict = true
	return e
}

// TestDiscovery takes the API server's address and the pods' prefixes from the cluster.
func TestDiscovery(t *testing.T) {
	kubeadm := map[string]string{"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta4\ncontrolPlaneEndpoint: lb.example:8443\nnetworking: {podSubnet: \"10.244.0.0/16,fd00:10:244::/56\"}\n"}
	for name, tt := range map[string]struct {
		maps   map[string]map[string]string
		values map[string]any
		want   []string
		not    []string
	}{
		"kube-proxy": {map[string]map[string]string{"kube-proxy": {}, "kubeadm-config": kubeadm}, nil,
			[]string{"--config=/var/lib/kube-proxy/config.conf", "name: kube-proxy\n"}, []string{"KUBERNETES_SERVICE_HOST", "cluster-cidr"}},
		"kubeadm": {map[string]map[string]string{"kubeadm-config": kubeadm}, nil,
			[]string{`api-server-host: "lb.example"`, `api-server-port: "8443"`, "--cluster-cidr=10.244.0.0/16,fd00:10:244::/56"}, []string{"kube-proxy"}},
		"kubeadm, IPv6": {map[string]map[string]string{"kubeadm-config": {"ClusterConfiguration": "controlPlaneEndpoint: \"[fd00::1]:6443\"\n"}}, nil,
			[]string{`api-server-host: "fd00::1"`, `api-server-port: "6443"`, "--detect-local-mode=NodeCIDR"}, nil},
		"kubeadm, without an endpoint": {map[string]map[string]string{"kubeadm-config": {"ClusterConfiguration": "networking: {podSubnet: 10.244.0.0/16}\n"},
			"cluster-info": {"kubeconfig": "apiVersion: v1\nclusters:\n- cluster: {server: \"https://192.0.2.9:6443\"}\n  name: \"\"\nkind: Config\nusers: null\n"}}, nil,
			[]string{`api-server-host: "192.0.2.9"`, `api-server-port: "6443"`, "--cluster-cidr=10.244.0.0/16"}, []string{"kube-proxy"}},
		"cluster-info, IPv6": {map[string]map[string]string{"cluster-info": {"kubeconfig": "clusters: [{cluster: {server: \"https://[fd00::9]:443\"}}]"}}, nil,
			[]string{`api-server-host: "fd00::9"`, `api-server-port: "443"`, "--detect-local-mode=NodeCIDR"}, nil},
		"kubeadm, a name": {map[string]map[string]string{"kubeadm-config": {"ClusterConfiguration": "controlPlaneEndpoint: lb.example\n"}}, nil,
			[]string{`api-server-host: "lb.example"`, `api-server-port: "6443"`}, nil},
		"values first": {map[string]map[string]string{"kube-proxy": {}, "kubeadm-config": kubeadm}, map[string]any{"apiServer": map[string]any{"host": "192.0.2.7"}, "clusterCIDR": "10.0.0.0/8"},
			[]string{`api-server-host: "192.0.2.7"`, `api-server-port: "6443"`, "--cluster-cidr=10.0.0.0/8"}, []string{"/var/lib/kube-proxy"}},
		"neither": {nil, map[string]any{"apiServer": map[string]any{"host": "192.0.2.7"}}, []string{"--detect-local-mode=NodeCIDR"}, []string{"--cluster-cidr"}},
	} {
		files, err := Render(tt.values, cluster(t, tt.maps))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := files[WeftFile]
		daemonSet(t, text)
		for _, want := range tt.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %s in\n%s", name, want, text)
			}
		}
		for _, not := range tt.not {
			if strings.Contains(string(text), not) {
				t.Errorf("%s: %s in\n%s", name, not, text)
			}
		}
	}
}
