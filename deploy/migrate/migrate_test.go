package migrate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/weft-proxy/weft/cmd/weft/takeover"
)

// requirements are node affinity terms for the label.
func daemonSet(name string, requirements ...corev1.NodeSelectorRequirement) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Image: name + ":v1"}}
	if len(requirements) > 0 {
		set.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: requirements}},
		}}}
	}
	return set
}

func requirement(operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: takeover.Label, Operator: operator, Values: values}
}

// gated returns kube-proxy's and weft's DaemonSets during a migration.
func gated() (peer, weft *appsv1.DaemonSet) {
	return daemonSet(peerName, requirement(corev1.NodeSelectorOpNotIn, takeover.Weft)),
		daemonSet(weftName, requirement(corev1.NodeSelectorOpIn, takeover.Beside, takeover.Weft))
}

func node(name string, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	n.Status.NodeInfo.KernelVersion = "6.1.0-13-amd64"
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func TestSelects(t *testing.T) {
	peer, weft := gated()
	other := corev1.NodeSelectorRequirement{Key: "kubernetes.io/os", Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}}
	either := daemonSet("either", other)
	terms := &either.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	*terms = append(*terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{requirement(corev1.NodeSelectorOpDoesNotExist)}})
	for name, test := range map[string]struct {
		set  *appsv1.DaemonSet
		want []string
	}{
		"no affinity":       {daemonSet("all"), []string{"", takeover.Beside, takeover.Weft}},
		"another label":     {daemonSet("linux", other), []string{"", takeover.Beside, takeover.Weft}},
		"kube-proxy":        {peer, []string{"", takeover.Beside}},
		"weft":              {weft, []string{takeover.Beside, takeover.Weft}},
		"exists":            {daemonSet("e", requirement(corev1.NodeSelectorOpExists)), []string{takeover.Beside, takeover.Weft}},
		"does not exist":    {daemonSet("n", requirement(corev1.NodeSelectorOpDoesNotExist)), []string{""}},
		"one of two terms":  {either, []string{"", takeover.Beside, takeover.Weft}},
		"a number":          {daemonSet("gt", requirement(corev1.NodeSelectorOpGt, "1")), nil},
		"two that conflict": {daemonSet("two", requirement(corev1.NodeSelectorOpExists), requirement(corev1.NodeSelectorOpDoesNotExist)), nil},
	} {
		var got []string
		for _, value := range []string{"", takeover.Beside, takeover.Weft} {
			if selects(test.set, value) {
				got = append(got, value)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: runs on nodes with %q, want %q", name, got, test.want)
		}
	}
}

// TestPrepare: the patch keeps the existing affinity, and is applied only if told to, and only once.
func TestPrepare(t *testing.T) {
	peer := daemonSet(peerName, corev1.NodeSelectorRequirement{Key: "kubernetes.io/os", Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}})
	peer.Spec.Template.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	var said strings.Builder
	c := &cluster{client: fake.NewClientset(peer), say: func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }}
	var printed []string
	for _, step := range []struct {
		yes  bool
		want string
	}{{false, "this is not applied"}, {true, "is patched"}, {true, "leaves the nodes that are weft's already"}} {
		said.Reset()
		var out strings.Builder
		if err := c.prepare(t.Context(), &out, step.yes); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said.String(), step.want) {
			t.Errorf("said %q, want %q", said.String(), step.want)
		}
		printed = append(printed, out.String())
	}
	if printed[0] != printed[1] || printed[2] != "" || !strings.Contains(printed[0], "kubernetes.io/os") || !strings.Contains(printed[0], "- key: weft.dev/proxy\n") {
		t.Errorf("printed %q", printed)
	}
	now, err := c.daemonSet(t.Context(), peerName)
	if err != nil || now.Spec.Template.Spec.Affinity.PodAntiAffinity == nil || len(required(&now.Spec.Template.Spec)[0].MatchExpressions) != 2 || now.Spec.Template.Spec.Containers[0].Image == "" {
		t.Errorf("kube-proxy is now %+v, %v", now, err)
	}
}

func config(text string) *corev1.ConfigMap {
	const head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: peerName}, Data: map[string]string{"config.conf": head + text}}
}

func TestAssess(t *testing.T) {
	peer, weft := gated()
	old, windows, away := node("old", nil), node("windows", nil), node("away", nil)
	old.Status.NodeInfo.KernelVersion = "5.4.0-42-generic"
	windows.Status.NodeInfo.KernelVersion, windows.Status.NodeInfo.OperatingSystem = "10.0.20348", "windows"
	away.Status.Conditions = nil
	affine := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, SessionAffinity: corev1.ServiceAffinityClientIP}}
	external := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "outside"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ExternalIPs: []string{"203.0.113.1"}}}
	const good = "mode: nftables\n"
	for name, test := range map[string]struct {
		objects []runtime.Object
		// beginnings of the findings, with their levels
		want []string
		code string
	}{
		"good":            {objects: []runtime.Object{peer, weft, config(good), node("a", nil)}},
		"nothing":         {want: []string{"blocks: DaemonSets: DaemonSet kube-system/kube-proxy does not exist", "differs: configuration: ConfigMap kube-system/kube-proxy has no config.conf", "note: DaemonSets: weft is not installed"}, code: "1"},
		"not prepared":    {objects: []runtime.Object{daemonSet(peerName), weft, config(good)}, want: []string{"note: DaemonSets: kube-proxy does not leave nodes"}},
		"weft everywhere": {objects: []runtime.Object{peer, daemonSet(weftName), config(good)}, want: []string{"blocks: DaemonSets: DaemonSet kube-system/weft runs on all nodes"}, code: "1"},
		"omitted":         {objects: []runtime.Object{peer, weft, config("")}, want: []string{"differs: configuration: NodePorts answer on the node's own addresses", "note: configuration: mode is not set: kube-proxy uses iptables"}, code: "3"},
		"iptables": {
			objects: []runtime.Object{peer, weft, config("mode: iptables\n")},
			want:    []string{"differs: configuration: NodePorts answer on the node's own addresses", "differs: configuration: mode iptables: weft always uses nftables"}, code: "3",
		},
		"external IPs": {objects: []runtime.Object{peer, weft, config(good), external}, want: []string{"note: Services: 1 have externalIPs, which kube-proxy 1.40 ignores by default, and weft if the API server has 1.40 or later: shop/outside"}},
		"ipvs": {
			objects: []runtime.Object{peer, weft, config("mode: ipvs\nnodePortAddresses: [primary]\nipvs:\n  scheduler: lc\n")},
			want:    []string{"blocks: configuration: the addresses of pods are not known", "differs: configuration: addresses of Services", "differs: configuration: ipvs.scheduler", "differs: configuration: mode ipvs: weft always uses nftables", "differs: configuration: the scheduler of IPVS is lc"}, code: "1",
		},
		"hard fail": {objects: []runtime.Object{peer, weft, config(good + "bindAddressHardFail: true\n")}, want: []string{"blocks: configuration: bindAddressHardFail"}, code: "1"},
		"broken":    {objects: []runtime.Object{peer, weft, config(good + "clusterCidr: 10.0.0.0/8\n")}, want: []string{"blocks: configuration: ConfigMap kube-system/kube-proxy:4: unknown field \"clusterCidr\": did you mean clusterCIDR?"}, code: "1"},
		"nodes": {
			objects: []runtime.Object{peer, weft, config(good), old, windows, away, node("done", map[string]string{takeover.Label: takeover.Weft}), affine},
			want:    []string{"blocks: nodes: kernel 5.4.0-42-generic is too old", "differs: Services: 1 have session affinity", "differs: nodes: 1 are not ready: away"}, code: "1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{client: fake.NewClientset(test.objects...)}
			r, err := c.assess(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range r.Findings {
				got = append(got, fmt.Sprintf("%s: %s: %s", f.Level, f.Subject, f.Found))
			}
			slices.Sort(got)
			if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("found %q, want %q", got, test.want)
			}
			code := ""
			if err := r.exit(); err != nil {
				code = strings.TrimPrefix(err.Error(), "exit code ")
			}
			if code != test.code {
				t.Errorf("exit code %q, want %q", code, test.code)
			}
			source := map[bool]string{true: "explicit: an upgrade keeps it", false: "by omission"}[name != "omitted"]
			if r.Mode != "" && r.ModeSource != source || r.Mode == "" && r.ModeSource != "" {
				t.Errorf("mode %q, %q: want %q", r.Mode, r.ModeSource, source)
			}
			var text strings.Builder
			if err := r.print(&text); err != nil || strings.Count(text.String(), ": ") < len(got) || !strings.Contains(text.String(), fmt.Sprintf("%d block, %d differ\n", r.count(blocks), r.count(differs))) {
				t.Errorf("printed %q, %v", text.String(), err)
			}
		})
	}
}

// TestMigrateGivesUp removes the label if weft does not become ready, and does not move nodes of
// DaemonSets without the label.
func TestMigrateGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, weft := gated()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "weft-1", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(weft, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}}, Spec: corev1.PodSpec{NodeName: "a"}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
		c := &cluster{client: fake.NewClientset(peer, weft, pod, node("a", nil)), timeout: time.Minute, say: func(string, ...any) {}}
		ctx := t.Context()
		err := c.migrate(ctx, "a")
		if err == nil || !strings.HasPrefix(err.Error(), "node a stays kube-proxy's: weft is not ready beside it: after 1m") || !strings.HasSuffix(err.Error(), ": pod weft-1 waits: ImagePullBackOff: no such image") {
			t.Errorf("got %v", err)
		}
		n, err := c.client.CoreV1().Nodes().Get(ctx, "a", metav1.GetOptions{})
		if err != nil || len(n.Labels) > 0 {
			t.Errorf("the node has labels %v, %v", n.Labels, err)
		}
	})
	peer, weft := gated()
	for want, objects := range map[string][]runtime.Object{
		"run weft migrate prepare":                                     {daemonSet(peerName), weft},
		"DaemonSet kube-system/kube-proxy does not exist":              {weft},
		"DaemonSet kube-system/weft does not exist: install weft with": {peer},
		"DaemonSet kube-system/weft runs on all nodes":                 {peer, daemonSet(weftName)},
	} {
		c := &cluster{client: fake.NewClientset(append(objects, node("a", nil))...), say: func(format string, args ...any) { t.Errorf(format, args...) }}
		for name, do := range map[string]func(context.Context, string) error{"migrate": c.migrate, "rollback": c.rollback} {
			if err := do(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
}

// TestEventAgain distinguishes a repeated event from an old one.
func TestEventAgain(t *testing.T) {
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "a.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "a"}, Reason: takeover.ReasonTookOver, Count: 1}
	client := fake.NewClientset(e)
	c := &cluster{client: client}
	before, err := c.events(t.Context(), "a", takeover.ReasonTookOver)
	if err != nil || !maps.Equal(before, map[string]int32{"a.1": 1}) {
		t.Fatalf("got %v, %v", before, err)
	}
	if err := c.said(t.Context(), "a", takeover.ReasonTookOver, before); err == nil {
		t.Error("an event of before counts")
	}
	e.Series = &corev1.EventSeries{Count: 2}
	if _, err := client.CoreV1().Events(e.Namespace).Update(t.Context(), e, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.said(t.Context(), "a", takeover.ReasonTookOver, before); err != nil {
		t.Error(err)
	}
}
