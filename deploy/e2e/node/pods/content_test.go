package pods

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// environment checks variables: constants, references to others, the downward API, config maps and
// secrets.
func environment(t *testing.T, e *env) {
	e.createConfig(t, map[string]string{"color": "green"}, map[string]string{"word": "hidden"})
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	c := shell("main", "echo $GREETING $(ADDRESS) args: $0; sleep 1000")
	c.Env = []corev1.EnvVar{
		{Name: "NAME", ValueFrom: field("metadata.name")},
		{Name: "GREETING", Value: "hello $(NAME)"},
		{Name: "ADDRESS", ValueFrom: field("status.podIP")},
		{Name: "ADDRESSES", ValueFrom: field("status.podIPs")},
		{Name: "HOST", ValueFrom: field("status.hostIP")},
		{Name: "COLOR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}, Key: "color"}}},
	}
	c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "secret"}}}}
	p := e.run(t, e.newPod("pod", 1, c))
	ip, host := p.Status.PodIP, e.lab.Nodes[1].Addresses.V4.String()
	if p.Status.HostIP != host {
		t.Errorf("host's address is %s, want %s", p.Status.HostIP, host)
	}
	if got, want := e.logs(t, p.Name, "main"), "hello pod "+ip+" args: sh\n"; got != want {
		t.Errorf("container wrote %q, want %q", got, want)
	}
	script := `tr '\0' '\n' </proc/1/environ; hostname; cat /etc/hosts`
	got := e.shell(t, p.Name, script)
	for _, want := range []string{
		"COLOR=green", "word=hidden", "HOST=" + host, "ADDRESSES=" + ip + "," + p.Status.PodIPs[1].IP,
		"KUBERNETES_SERVICE_HOST=10.96.0.1", "\npod\n", ip + "\tpod",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s wrote no %q:\n%s", script, want, got)
		}
	}
	if got := e.shell(t, p.Name, "cat /etc/resolv.conf"); !strings.Contains(got, "nameserver 10.96.0.10") || !strings.Contains(got, e.namespace+".svc.cluster.local") {
		t.Errorf("/etc/resolv.conf is %q", got)
	}
}

func (e *env) createConfig(t *testing.T, config, secret map[string]string) {
	t.Helper()
	c := e.client.CoreV1()
	object := metav1.ObjectMeta{Namespace: e.namespace, Name: "config"}
	if _, err := c.ConfigMaps(e.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: object, Data: config}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	object.Name = "secret"
	if _, err := c.Secrets(e.namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: object, StringData: secret}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// volumes checks volumes of objects, a directory of the host, and the token.
func volumes(t *testing.T, e *env) {
	e.createConfig(t, map[string]string{"color": "green"}, map[string]string{"word": "hidden"})
	kinds := map[string]corev1.VolumeSource{
		"config": {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}},
		"secret": {Secret: &corev1.SecretVolumeSource{SecretName: "secret"}},
		"fields": {DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		}}},
		"memory": {EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
		"host":   {HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}},
	}
	c := shell("main", "sleep 1000")
	p := e.newPod("pod", 0, c)
	p.Labels = map[string]string{"app": "volumes"}
	for name, source := range kinds {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/volumes/" + name})
	}
	p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "config", MountPath: "/alone", SubPath: "color"})
	e.run(t, p)
	const token = "/var/run/secrets/kubernetes.io/serviceaccount"
	for script, want := range map[string]string{
		"cat /volumes/config/color":                  "green",
		"cat /volumes/secret/word":                   "hidden",
		"cat /volumes/fields/labels":                 `app="volumes"`,
		"stat -f -c %T /volumes/memory":              "tmpfs",
		"test -f /volumes/host/passwd && echo there": "there",
		"cat /alone":                  "green",
		"cat " + token + "/namespace": e.namespace,
		"touch /volumes/secret/new 2>&1 || echo read-only": "read-only",
		"curl -sS --cacert " + token + "/ca.crt -o /dev/null -w '%{http_code}' -H \"Authorization: Bearer $(cat " + token + "/token)\" " + e.cluster.URL() + "/version": "200",
	} {
		if got := e.shell(t, p.Name, script); !strings.Contains(got, want) {
			t.Errorf("%s wrote %q, want %q", script, got, want)
		}
	}
}

// capabilities compares containers by default, with all dropped, one added, and privileged.
func capabilities(t *testing.T, e *env) {
	show := func(name string, security *corev1.SecurityContext) corev1.Container {
		c := shell(name, "sed -n 's/^CapEff:.//p' /proc/self/status; exec sleep 1000")
		c.SecurityContext = security
		return c
	}
	privileged := true
	all, bind := []corev1.Capability{"ALL"}, []corev1.Capability{"NET_BIND_SERVICE"}
	p := e.run(t, e.newPod("pod", 0,
		show("default", nil),
		show("none", &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: all}}),
		show("one", &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: all, Add: bind}}),
		show("privileged", &corev1.SecurityContext{Privileged: &privileged})))
	// The first is containerd's default.
	for name, want := range map[string]string{"default": "00000000a80425fb", "none": "0000000000000000", "one": "0000000000000400"} {
		if got := strings.TrimSpace(e.logs(t, p.Name, name)); got != want {
			t.Errorf("container %s has capabilities %s, want %s", name, got, want)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(e.logs(t, p.Name, "privileged")); !strings.Contains(string(status), "CapEff:\t"+got+"\n") {
		t.Errorf("privileged container has capabilities %s, want those of the node:\n%s", got, status)
	}
}
