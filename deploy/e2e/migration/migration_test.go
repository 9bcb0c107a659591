package migration

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// step bounds each step of a node.
const step = "1m"

// TestMigration migrates all nodes, rolls one back, and migrates it again, from each mode of
// kube-proxy.
func TestMigration(t *testing.T) {
	for mode := range strings.SplitSeq(*modesFlag, ",") {
		t.Run(mode, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			newWorld(t, ctx, mode).migrate(t, ctx)
		})
	}
}

func (w *world) migrate(t *testing.T, ctx context.Context) {
	defer func() {
		if !t.Failed() {
			return
		}
		out, err := w.Kubectl(context.WithoutCancel(ctx), "--namespace", metav1.NamespaceSystem, "logs", "--selector", "app.kubernetes.io/name=weft", "--all-containers", "--prefix", "--tail", "40")
		t.Logf("weft's logs: %v\n%s", err, out)
	}()
	do := func(what string, f func() (string, error)) {
		t.Helper()
		out, err := f()
		if err != nil {
			t.Fatalf("%s: %v\n%s", what, err, out)
		}
		t.Logf("%s %s\n%s", time.Now().Format(time.StampMilli), what, out)
	}
	weft := func(args ...string) {
		t.Helper()
		do("weft "+strings.Join(args, " "), func() (string, error) { return w.weft(ctx, args...) })
	}
	traffic, err := w.startService(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	do("kubectl apply", func() (string, error) {
		return w.Kubectl(ctx, "apply", "-f", "../../kubernetes/migration/rbac.yaml", "-f", "../../kubernetes/migration/weft.yaml")
	})
	out, err := w.weft(ctx, "migrate", "assess")
	t.Logf("weft migrate assess: %v\n%s", err, out)
	if strings.Contains(out, "blocks:") || !strings.Contains(out, "3 nodes") {
		t.Errorf("weft migrate assess does not let the cluster migrate: %v\n%s", err, out)
	}
	// kube-proxy restarts on every node, and its rules stay unchanged meanwhile.
	weft("migrate", "prepare", "--yes")
	if err := w.rollout(ctx, "kube-proxy"); err != nil {
		t.Fatal(err)
	}
	// A running pod's kube-proxy may not have listed yet: each first follows a change.
	w.follow(t, ctx, w.web[1:])
	w.follow(t, ctx, w.web)
	churn := w.startChurn(ctx, traffic)
	for _, n := range w.Lab.Nodes {
		weft("migrate", "node", n.Name(), "--timeout", step)
		w.only(t, ctx, n, "weft")
	}
	back := w.Lab.Nodes[1]
	weft("migrate", "rollback", back.Name(), "--timeout", step)
	w.only(t, ctx, back, "kube-proxy")
	weft("migrate", "node", back.Name(), "--timeout", step)
	w.only(t, ctx, back, "weft")
	if err := churn(); err != nil {
		t.Error(err)
	}
	t.Logf("mode %s: %s", w.mode, traffic.finish(t))
}

// follow changes the endpoints, and waits until the rules of every node have exactly these.
func (w *world) follow(t *testing.T, ctx context.Context, endpoints []*lab.Pod) {
	t.Helper()
	for family := range families {
		if _, err := w.Cluster.Client().DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Update(ctx, slice(family, endpoints), metav1.UpdateOptions{}); err != nil {
			t.Fatalf("change endpoints: %v", err)
		}
	}
	if err := lab.Within(ctx, time.Minute, func() error {
		for _, n := range w.Lab.Nodes {
			rules := w.rules(t, ctx, n)
			for _, p := range w.web {
				for _, addr := range []netip.Addr{p.Addresses.V4, p.Addresses.V6} {
					// Alone, as a prefix, or with a port.
					has := regexp.MustCompile(regexp.QuoteMeta(addr.String()) + `([ /\]]|:\d)`).MatchString(rules)
					if has != slices.Contains(endpoints, p) {
						return fmt.Errorf("node %s has an endpoint %s: %t", n.Name(), addr, has)
					}
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) rules(t *testing.T, ctx context.Context, n *lab.Node) string {
	t.Helper()
	var all strings.Builder
	for _, program := range []string{"nft list ruleset", "iptables-legacy-save", "ip6tables-legacy-save"} {
		argv := strings.Fields(program)
		text, err := n.Run(ctx, argv[0], argv[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(text)
	}
	return all.String()
}

// only requires one proxy's rules on a node, without the other's.
func (w *world) only(t *testing.T, ctx context.Context, n *lab.Node, proxy string) {
	t.Helper()
	all := w.rules(t, ctx, n)
	for name, words := range map[string][]string{"weft": {"table ip weft", "table ip6 weft"}, "kube-proxy": {"table ip kube-proxy", "table ip6 kube-proxy", "KUBE-SERVICES"}} {
		has := false
		for _, word := range words {
			has = has || strings.Contains(all, word)
		}
		if has != (name == proxy) {
			t.Errorf("%s: rules of %s: %t, and it should have those of %s alone", n.Name(), name, has, proxy)
		}
	}
}

// startService makes the Service, and starts traffic when every stream is answered.
func (w *world) startService(ctx context.Context, away func(n *lab.Node, from, to time.Time) time.Duration) (*traffic, error) {
	service, err := w.createService(ctx)
	if err != nil {
		return nil, err
	}
	streams := w.streams(service)
	for _, s := range streams {
		if err := lab.Within(ctx, time.Minute, func() error { _, err := s.from.Ask(ctx, s.proto, s.to, late); return err }); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	// Flows from before the rules are tracked without a translation.
	for _, n := range w.Lab.Nodes {
		if _, err := n.Run(ctx, "conntrack", "-F"); err != nil {
			return nil, fmt.Errorf("flush flows: %w", err)
		}
	}
	return startTraffic(ctx, streams, away), nil
}

func (w *world) createService(ctx context.Context) (*corev1.Service, error) {
	policy := corev1.IPFamilyPolicyRequireDualStack
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: metav1.NamespaceDefault}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, IPFamilyPolicy: &policy,
		Ports: []corev1.ServicePort{
			{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(webPort)},
			{Name: "udp", Protocol: corev1.ProtocolUDP, Port: 80, TargetPort: intstr.FromInt32(webPort)},
		},
	}}
	s, err := w.Cluster.Client().CoreV1().Services(s.Namespace).Create(ctx, s, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create Service: %w", err)
	}
	for i := range families {
		if _, err := w.Cluster.Client().DiscoveryV1().EndpointSlices(s.Namespace).Create(ctx, slice(i, w.web), metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("create EndpointSlice: %w", err)
		}
	}
	return s, nil
}

// IPv4 first, as in the addresses of pods
var families = []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}

func slice(family int, pods []*lab.Pod) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-" + strings.ToLower(string(families[family])), Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "migration"},
		},
		AddressType: families[family],
	}
	for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: new(strings.ToLower(string(p))), Protocol: new(p), Port: new(int32(webPort))})
	}
	for _, p := range pods {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{p.Addresses.All()[family].String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, NodeName: new(p.Node().Name()),
		})
	}
	return s
}

// streams are traffic of each protocol and family, from each node's pod and to each node from outside.
func (w *world) streams(s *corev1.Service) []stream {
	var all []stream
	for i, proto := range []string{"tcp", "udp"} {
		for family := range families {
			vip := netip.AddrPortFrom(netip.MustParseAddr(s.Spec.ClusterIPs[family]), 80)
			for j, c := range w.clients {
				port := netip.AddrPortFrom(w.Lab.Nodes[j].Addresses.All()[family], uint16(s.Spec.Ports[i].NodePort))
				all = append(all,
					stream{name: fmt.Sprintf("%s from %s to %s", proto, c.Name(), vip), node: w.Lab.Nodes[j], from: c.Namespace, proto: proto, to: vip},
					stream{name: fmt.Sprintf("%s from outside to %s", proto, port), node: w.Lab.Nodes[j], from: w.Lab.Outside.Namespace, proto: proto, to: port})
			}
		}
	}
	return all
}

// startChurn changes the endpoints twice a second: a third of the pods leaves, and another third
// returns.
func (w *world) startChurn(ctx context.Context, traffic *traffic) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for round := 0; ; round++ {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-tick.C:
			}
			var endpoints []*lab.Pod
			for i, p := range w.web {
				// Each is away for three seconds and there for six.
				if (i+round/6)%3 != 0 {
					endpoints = append(endpoints, p)
				}
			}
			// One more is away in every other change.
			if round%2 == 1 {
				endpoints = endpoints[1:]
			}
			traffic.enter(endpoints)
			for family := range families {
				if _, err := w.Cluster.Client().DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Update(ctx, slice(family, endpoints), metav1.UpdateOptions{}); err != nil && ctx.Err() == nil {
					done <- fmt.Errorf("change endpoints: %w", err)
					return
				}
			}
			traffic.note(w.web, endpoints)
		}
	}()
	return func() error {
		cancel()
		return <-done
	}
}
