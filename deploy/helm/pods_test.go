package helm

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// kernel is only for containers that program the kernel.
var kernel = []corev1.Capability{"NET_ADMIN"} //nolint:gochecknoglobals // a constant

// rights are the rights of each container.
var rights = map[string]struct { //nolint:gochecknoglobals // a table
	capabilities []corev1.Capability
	// token: the container has API credentials.
	token bool
	// 0 for the pod's user
	user int64
}{
	"aggregator": {kernel, false, 0},
	"services":   {nil, true, 64501},
	"policy":     {nil, true, 64502},
	"weft":       {kernel, true, 0},
}

// TestPods checks the pods of every variant.
func TestPods(t *testing.T) {
	variants, err := Variants()
	must(t, err)
	for _, v := range variants {
		t.Run(v, func(t *testing.T) {
			files, err := Manifests(v)
			must(t, err)
			checkAccount(t, files[RBACFile])
			spec := daemonSet(t, files[WeftFile]).Spec.Template.Spec
			checkPod(t, &spec)
			checkVolumes(t, &spec)
			for _, c := range spec.InitContainers {
				checkHostSettings(t, &c)
			}
			for _, c := range spec.Containers {
				checkContainer(t, &c)
				checkProbes(t, v, &c)
				if limit := c.Resources.Limits.Memory(); (v == "hardened" || v == "confined") && limit.IsZero() {
					t.Errorf("container %s has no limit of memory", c.Name)
				}
			}
			if privileged := len(spec.InitContainers) > 0; privileged == slices.Contains([]string{"hardened", "confined", "kind"}, v) {
				t.Errorf("init container for the settings of the node: %t", privileged)
			}
		})
	}
}

// checkAccount requires that tokens are not mounted by default.
func checkAccount(t *testing.T, text []byte) {
	t.Helper()
	all := objects(t, text)
	if len(all) != 3 {
		t.Errorf("%d objects about rights", len(all))
	}
	for _, o := range all {
		if a, ok := o.(*corev1.ServiceAccount); ok {
			if a.AutomountServiceAccountToken == nil || *a.AutomountServiceAccountToken {
				t.Error("the ServiceAccount mounts its token into every pod")
			}
			return
		}
	}
	t.Error("no ServiceAccount")
}

func checkPod(t *testing.T, spec *corev1.PodSpec) {
	t.Helper()
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		t.Error("the kubelet mounts a token into every container")
	}
	if spec.PriorityClassName != "system-node-critical" {
		t.Errorf("priority class %q", spec.PriorityClassName)
	}
	if !spec.HostNetwork || spec.HostPID || spec.HostIPC {
		t.Errorf("namespaces of the node: network %t, processes %t, IPC %t", spec.HostNetwork, spec.HostPID, spec.HostIPC)
	}
	s := spec.SecurityContext
	if s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("seccomp profile of the pod: %v", s.SeccompProfile)
	}
	// The pod's options apply to containers without their own.
	if s.SELinuxOptions == nil || s.SELinuxOptions.Type != "spc_t" {
		t.Errorf("SELinux options of the pod: %v", s.SELinuxOptions)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if c.SecurityContext.SELinuxOptions != nil {
			t.Errorf("container %s: SELinux options %v", c.Name, c.SecurityContext.SELinuxOptions)
		}
		if ro := c.SecurityContext.ReadOnlyRootFilesystem; ro == nil || !*ro {
			t.Errorf("container %s may write to its root", c.Name)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
			t.Errorf("container %s requests %v", c.Name, c.Resources.Requests)
		}
	}
}

// checkVolumes requires that each volume is used, and only weft's own and NRI's directories of the
// node.
func checkVolumes(t *testing.T, spec *corev1.PodSpec) {
	t.Helper()
	mounted := map[string]bool{}
	for _, v := range spec.Volumes {
		mounted[v.Name] = false
		if h := v.HostPath; h != nil && !slices.Contains([]string{"/run/weft", "/var/lib/weft", "/var/run/nri"}, h.Path) {
			t.Errorf("volume %s is the node's %s", v.Name, h.Path)
		}
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, m := range c.VolumeMounts {
			if _, ok := mounted[m.Name]; !ok {
				t.Errorf("container %s mounts %s, which is not a volume", c.Name, m.Name)
			}
			mounted[m.Name] = true
			kernel := len(rights[c.Name].capabilities) > 0
			if m.Name == "state" && !kernel || m.Name == "run" && !kernel && !m.ReadOnly {
				t.Errorf("container %s may write to %s", c.Name, m.MountPath)
			}
		}
	}
	for name, used := range mounted {
		if !used {
			t.Errorf("no container mounts the volume %s", name)
		}
	}
}

// checkHostSettings requires an init container that is privileged, without a token and directories of
// the node, and that ends.
func checkHostSettings(t *testing.T, c *corev1.Container) {
	t.Helper()
	if p := c.SecurityContext.Privileged; p == nil || !*p || c.RestartPolicy != nil {
		t.Errorf("init container %s: %+v", c.Name, c.SecurityContext)
	}
	if len(c.Args) < 2 || c.Args[0] != "run" || c.Args[1] != "--init-only" {
		t.Errorf("init container %s runs %v", c.Name, c.Args)
	}
	for _, m := range c.VolumeMounts {
		if m.Name != "kube-proxy" || !m.ReadOnly {
			t.Errorf("init container %s mounts %s", c.Name, m.Name)
		}
	}
}

func checkContainer(t *testing.T, c *corev1.Container) {
	t.Helper()
	want, ok := rights[c.Name]
	if !ok {
		t.Errorf("container %s: its rights are in no table", c.Name)
	}
	s := c.SecurityContext
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Privileged != nil || s.ProcMount != nil {
		t.Errorf("container %s: %+v", c.Name, s)
	}
	if !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || !slices.Equal(s.Capabilities.Add, want.capabilities) {
		t.Errorf("container %s: capabilities %v, want %v", c.Name, s.Capabilities, want.capabilities)
	}
	if user := value(s.RunAsUser); user != want.user || user != 0 && value(s.RunAsGroup) != 64500 {
		t.Errorf("container %s: user %d of group %d, want user %d of group 64500", c.Name, user, value(s.RunAsGroup), want.user)
	}
	token := false
	for _, m := range c.VolumeMounts {
		if m.Name == "api-access" {
			token = true
			if !m.ReadOnly {
				t.Errorf("container %s may write to %s", c.Name, m.MountPath)
			}
		}
		if strings.Contains(m.MountPath, "secrets") && m.Name != "api-access" {
			t.Errorf("container %s mounts %s at %s", c.Name, m.Name, m.MountPath)
		}
	}
	if token != want.token {
		t.Errorf("container %s: API credentials %t", c.Name, token)
	}
}

// 0 for nil
func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// TestConfiguration: in split mode the configuration has the frontends, beside other publishers and
// unless it names them.
func TestConfiguration(t *testing.T) {
	publisher := func(name string, uid int) map[string]any {
		return map[string]any{"name": name, "match": map[string]any{"uid": uid}}
	}
	for _, tt := range []struct {
		mode string
		nri  bool
		own  []any
		want []string
	}{
		{"split", false, nil, []string{"services 64501", "policy 64502"}},
		{"split", true, []any{publisher("services", 1), publisher("a", 2)}, []string{"policy 0", "services 1", "a 2"}},
		{"single", false, []any{publisher("a", 2)}, []string{"a 2"}},
	} {
		configuration := map[string]any{}
		if tt.own != nil {
			configuration["publishers"] = tt.own
		}
		policies := map[string]any{"enabled": true, "nri": tt.nri}
		file := weft(t, map[string]any{"mode": tt.mode, "networkPolicy": policies, "configuration": configuration})
		var have []string
		for _, o := range objects(t, file) {
			m, ok := o.(*corev1.ConfigMap)
			if !ok || m.Name != "weft-publishers" {
				continue
			}
			var c struct {
				Publishers []struct {
					Name  string
					Match struct{ UID int }
				}
			}
			must(t, yaml.Unmarshal([]byte(m.Data["config.yaml"]), &c))
			for _, p := range c.Publishers {
				have = append(have, fmt.Sprintf("%s %d", p.Name, p.Match.UID))
			}
		}
		if !slices.Equal(have, tt.want) {
			t.Errorf("mode %s: publishers %q, want %q", tt.mode, have, tt.want)
		}
	}
}

// TestKubeletPods: the Service frontend has the directory of the kubelet's socket, read-only, and the user that may
// connect there; no other container has it.
func TestKubeletPods(t *testing.T) {
	for _, mode := range []string{"split", "single"} {
		for _, on := range []bool{true, false} {
			values := map[string]any{"mode": mode, "clusterCIDR": "10.0.0.0/8", "networkPolicy": map[string]any{"enabled": true}, "kubeletPods": map[string]any{"enabled": on}}
			spec := podsOf(t, values)[0].Spec
			var path []string
			for _, v := range spec.Volumes {
				if v.Name == "kubelet-pods" {
					path = append(path, v.HostPath.Path+" "+string(*v.HostPath.Type))
				}
			}
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				for _, m := range c.VolumeMounts {
					if m.Name == "kubelet-pods" {
						path = append(path, fmt.Sprintf("%s of user %d: %s read-only %t", c.Name, value(c.SecurityContext.RunAsUser), m.MountPath, m.ReadOnly))
					}
				}
			}
			var want []string
			if name := map[string]string{"split": "services", "single": "weft"}[mode]; on {
				want = []string{"/var/lib/kubelet/pods-api DirectoryOrCreate", name + " of user 0: /var/lib/kubelet/pods-api read-only true"}
			}
			if !slices.Equal(path, want) {
				t.Errorf("mode %s, enabled %t: %q, want %q", mode, on, path, want)
			}
		}
	}
}

// checkProbes requires probes at the container's addresses.
func checkProbes(t *testing.T, variant string, c *corev1.Container) {
	t.Helper()
	args := strings.Join(c.Args, " ")
	probes := map[string]*corev1.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe}
	if variant == "migration" {
		// Beside kube-proxy the port is kube-proxy's, which also answers.
		delete(probes, "/readyz")
		if p := c.ReadinessProbe; p == nil || p.Exec == nil || strings.Join(p.Exec.Command, " ") != "/weft get status --ready" {
			t.Errorf("container %s: readiness probe is %v", c.Name, p)
		}
	}
	for name, p := range probes {
		if p == nil || p.HTTPGet.Path != name {
			t.Fatalf("container %s: probe of %s is %v", c.Name, name, p)
		}
		want := map[bool]string{true: "::1", false: "127.0.0.1"}[variant == "ipv6-only"]
		if p.HTTPGet.Host != want {
			t.Errorf("container %s is probed at %s, want %s", c.Name, p.HTTPGet.Host, want)
		}
		// With kube-proxy's file the port is its default.
		if port := p.HTTPGet.Port.IntValue(); !strings.Contains(args, fmt.Sprintf(":%d", port)) && !(strings.Contains(args, "config.conf") && port == 10256) {
			t.Errorf("container %s is probed on port %d, and listens with %s", c.Name, port, args)
		}
	}
}

// TestProfiles: each container names a file of deploy/security, and a profile in that file.
func TestProfiles(t *testing.T) {
	appArmor, err := os.ReadFile("../security/apparmor/weft")
	must(t, err)
	for _, mode := range []string{"split", "single"} {
		on := map[string]any{"enabled": true}
		seccomp := map[string]any{"type": "Localhost", "localhostProfile": "security/seccomp/NAME.json"}
		file := weft(t, map[string]any{"mode": mode, "networkPolicy": on, "seccomp": seccomp, "appArmor": on})
		for _, c := range daemonSet(t, file).Spec.Template.Spec.Containers {
			if p := c.SecurityContext.SeccompProfile; p == nil || p.Type != corev1.SeccompProfileTypeLocalhost {
				t.Errorf("container %s: seccomp profile %v", c.Name, p)
			} else if _, err := os.Stat("../" + *p.LocalhostProfile); err != nil {
				t.Errorf("container %s: %v", c.Name, err)
			}
			if p := c.SecurityContext.AppArmorProfile; p == nil || p.Type != corev1.AppArmorProfileTypeLocalhost {
				t.Errorf("container %s: AppArmor profile %v", c.Name, p)
			} else if !strings.Contains(string(appArmor), "\nprofile "+*p.LocalhostProfile+" ") {
				t.Errorf("container %s: no profile %s in deploy/security/apparmor/weft", c.Name, *p.LocalhostProfile)
			}
		}
	}
}
