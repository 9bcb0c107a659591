package helm

import (
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// containers maps the chart's containers to the key in the values and the verb.
var containers = map[string]struct{ key, verb string }{ //nolint:gochecknoglobals // a table
	"aggregator": {"aggregator", "aggregator"}, "services": {"services", "services"}, "policy": {"policy", "policy"},
	"weft": {"single", "run"}, "hold": {"hold", "hold"}, "host-settings": {"hostSettings", "run"},
}

// listed are flags that add to a list which the chart begins: separate values set them.
var listed = map[string]string{"cluster-cidr": "clusterCIDR", "config": "configuration and kubeProxyConfigMap"} //nolint:gochecknoglobals // a table

var helpLine = regexp.MustCompile(`(?m)^ +(?:-., )?--([a-z0-9-]+)(?: (\S+))?`)

// flags returns each verb's flags with types, from its help.
func flags(t *testing.T) map[string]map[string]string {
	t.Helper()
	weft := filepath.Join(t.TempDir(), "weft")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", weft, "./cmd/weft")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	all := map[string]map[string]string{}
	for _, c := range containers {
		out, err := exec.CommandContext(t.Context(), weft, c.verb, "--help").Output()
		must(t, err)
		all[c.verb] = map[string]string{}
		_, text, _ := strings.Cut(string(out), "\nFlags")
		for _, m := range helpLine.FindAllStringSubmatch(text, -1) {
			if m[1] != "help" {
				all[c.verb][m[1]] = m[2]
			}
		}
		if len(all[c.verb]) == 0 {
			t.Fatalf("weft %s has no flags", c.verb)
		}
	}
	return all
}

// podsOf returns the pods of all DaemonSets for values.
func podsOf(t *testing.T, values map[string]any) (pods []corev1.PodTemplateSpec) {
	t.Helper()
	for _, o := range objects(t, weft(t, values)) {
		if set, ok := o.(*appsv1.DaemonSet); ok {
			pods = append(pods, set.Spec.Template)
		}
	}
	return pods
}

// all are values with every container of a mode and every argument of the chart.
func all(mode string) map[string]any {
	on := map[string]any{"enabled": true}
	return map[string]any{
		"mode": mode, "clusterCIDR": "10.0.0.0/8", "hold": on, "kubeletPods": on, "migration": map[string]any{"enabled": mode == "single"},
		"networkPolicy":  map[string]any{"enabled": true, "status": true, "nri": true},
		"serviceMetrics": map[string]any{"counters": "endpoint", "activeConnections": true},
	}
}

// TestFlags sets every flag of every daemon from the values. The chart's own arguments must be flags of
// the daemon.
func TestFlags(t *testing.T) {
	known := flags(t)
	tried := map[string]bool{}
	for _, mode := range []string{"split", "single"} {
		own := map[string][]string{}
		for _, pod := range podsOf(t, all(mode)) {
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				own[c.Name] = c.Args
			}
		}
		for name, args := range own {
			tried[name] = true
			verb, key := containers[name].verb, containers[name].key
			for _, arg := range args[1:] {
				flag, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
				kind, ok := known[verb][flag]
				if !ok {
					t.Errorf("mode %s, container %s: weft %s has no flag %s", mode, name, verb, arg)
				}
				if strings.HasPrefix(kind, "string") && kind != "string" && listed[flag] == "" {
					t.Errorf("mode %s, container %s: the values cannot set the list %s", mode, name, arg)
				}
			}
			var more []any
			want := slices.Clone(args)
			for flag := range known[verb] {
				more, want = append(more, "--"+flag+"=x"), append(want, "--"+flag+"=x")
			}
			values := all(mode)
			values["extraArgs"] = map[string]any{key: more}
			for _, pod := range podsOf(t, values) {
				for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
					if c.Name == name && !slices.Equal(c.Args, want) || c.Name != name && !slices.Equal(c.Args, own[c.Name]) {
						t.Errorf("mode %s, extraArgs.%s: container %s has %q", mode, key, c.Name, c.Args)
					}
				}
			}
		}
	}
	if len(tried) != len(containers) {
		t.Errorf("only the containers %v", tried)
	}
}

// argumentsOf are the containers with an argument of TestPodValues.
var argumentsOf = map[string][]string{
	"--log-level=debug":            {"aggregator", "services", "policy", "weft", "host-settings"},
	"--service-counters=endpoint":  {"services", "weft", "host-settings"},
	"--service-active-connections": {"services", "weft", "host-settings"},
}

// TestPodValues checks the values for every pod and container.
func TestPodValues(t *testing.T) {
	for _, mode := range []string{"split", "single"} {
		values := all(mode)
		values["logLevel"] = "debug"
		values["podAnnotations"] = map[string]any{"example.com/a": "b: c"}
		values["imagePullSecrets"] = []any{map[string]any{"name": "registry"}}
		values["tolerations"] = []any{map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}}
		resources := map[string]any{}
		for name, c := range containers {
			resources[c.key] = map[string]any{"limits": map[string]any{"memory": fmt.Sprintf("%dMi", 100+len(name))}}
		}
		values["resources"] = resources
		pods := podsOf(t, values)
		if len(pods) != 2 {
			t.Fatalf("%d DaemonSets", len(pods))
		}
		for _, pod := range pods {
			if s := pod.Spec; pod.Annotations["example.com/a"] != "b: c" || !reflect.DeepEqual(s.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "registry"}}) ||
				!reflect.DeepEqual(s.Tolerations, []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists"}}) {
				t.Errorf("mode %s: %v, %v, %v", mode, pod.Annotations, s.ImagePullSecrets, s.Tolerations)
			}
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				if got, want := c.Resources.Limits.Memory().String(), fmt.Sprintf("%dMi", 100+len(c.Name)); got != want {
					t.Errorf("mode %s, container %s: memory %s, want %s", mode, c.Name, got, want)
				}
				for arg, names := range argumentsOf {
					if got, want := slices.Contains(c.Args, arg), slices.Contains(names, c.Name); got != want {
						t.Errorf("mode %s, container %s: %s in %q: %t", mode, c.Name, arg, c.Args, got)
					}
				}
			}
		}
	}
}

// TestCIDRs: the chart accepts a prefix if netip does.
func TestCIDRs(t *testing.T) {
	var texts []string
	for _, addr := range []string{
		"10.244.0.0", "255.255.255.255", "256.0.0.1", "10.244.0", "10.244.0.0.0", "01.2.3.4", "::", "fd00:10:244::", "fd00::1", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8",
		"1::3:4:5:6:7:8", "1:2:3:4::7:8", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", ":::", "1:2:3:4:5:6:7", "fe80::1%eth0", "g::", "",
	} {
		for _, bits := range []string{"", "/", "/0", "/16", "/016", "/32", "/33", "/-1", "/56", "/128", "/129", "/1000", "/16 "} {
			texts = append(texts, addr+bits)
		}
	}
	for _, text := range texts {
		if text == "" {
			continue // not given
		}
		_, want := netip.ParsePrefix(text)
		_, err := Render(map[string]any{"apiServer": host, "clusterCIDR": text}, engine.Engine{Strict: true})
		if (err == nil) != (want == nil) {
			t.Errorf("%q: %v, and netip: %v", text, err, want)
		}
	}
}
