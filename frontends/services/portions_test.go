package services

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// withPorts makes a Service default/name with n TCP ports and without endpoints.
func withPorts(name, ip string, created int64, n int, external ...string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.Unix(created, 0)}}
	s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.ExternalIPs = ip, []string{ip}, external
	for i := range n {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Protocol: corev1.ProtocolTCP, Port: int32(i + 1)})
	}
	return s
}

// listeners counts the ports of an address that are in force.
func listeners(elements map[string]string, addr string) (n int) {
	for k := range elements {
		if strings.Contains(k, "services { "+addr+" . ") {
			n++
		}
	}
	return n
}

// TestPortionsOfServices has large Services among small ones in one batch: the small ones are in
// force first, and the large ones in several updates; of two that hand a listener over, it is
// always there.
func TestPortionsOfServices(t *testing.T) {
	const handed, ports = "203.0.113.1", 9_000
	fake := newFake(t)
	src := newScript(withPorts("old", "10.96.9.1", 1, 1, handed))
	f, _ := run(t, Config{Source: src, Socket: fake.Socket})
	await(t, "the first commit", func() bool { return f.Status().Published && f.Status().Pending.IsZero() })

	huge := model.Key{Namespace: "default", Name: "huge"}
	var updates []string
	fake.Judge(func(elements map[string]string) []*weftv1.Violation {
		small, of, heir := listeners(elements, "10.96.0.3"), listeners(elements, "10.96.9.2"), listeners(elements, handed)
		updates = append(updates, fmt.Sprint(small))
		if heir < 1 {
			t.Error("no Service has the listener that is handed over")
		}
		if o := f.publisher.Outcome(huge); o.State == publish.InForce && of < ports {
			t.Errorf("the Service is in force with %d of its ports", of)
		}
		return nil
	})
	release := fake.Hold()
	src.deliver(many(1)...)
	await(t, "an update in flight", func() bool { return !f.Status().Pending.IsZero() })
	large := []any{withPorts("huge", "10.96.9.2", 2, ports), withPorts("heir", "10.96.9.3", 2, ports, handed), withPorts("old", "10.96.9.1", 1, 1)}
	src.deliver(append(large, many(3)...)...)
	await(t, "the events", func() bool { return len(src.batches) == 0 })
	release()
	await(t, "all Services", func() bool { return f.Status().Pending.IsZero() && f.publisher.Outcome(huge).State == publish.InForce })
	fake.Judge(nil)
	if got := strings.Join(slices.Compact(slices.Clone(updates)), " "); got != "0 2" || len(updates) < 8 {
		t.Errorf("the updates have %v of the small Services: want 0 and then 2, and 8 at least", updates)
	}
}
