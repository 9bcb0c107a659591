package services

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// TestFamilyStays has IPv6 refused after rules for it are in force: they stay, and the
// missed changes follow once it is accepted again. The node is unhealthy when that takes
// longer than any change may, though IPv4 goes on.
//
// Behaviour: 96, 125, 136.
func TestFamilyStays(t *testing.T) {
	f := newFake(t)
	events := append(many(2), setService("six", 0, "10.96.0.3", "fd00::3"), setSlice("six", ipv4, "10.244.0.3"), setNode(netip.MustParseAddr("192.0.2.1")))
	src := newScript(events...)
	clock := publishtest.NewClock()
	frontend, _ := run(t, Config{Source: src, Socket: f.Socket, Now: clock.Now, SyncPeriod: 30 * time.Second})
	six := func() string {
		var out []string
		for k := range f.Elements() {
			if rest, ok := strings.CutPrefix(strings.TrimSuffix(k, " }"), "element ip6 weft cluster-ips { "); ok {
				out = append(out, rest)
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	await(t, "both families", func() bool { return f.served() == all(3) && six() == "fd00::3" })
	f.Judge(func(elements map[string]string) []*weftv1.Violation {
		if _, other := elements[object("ip6", "cluster-ips", "fd00::9")]; !other {
			return nil
		}
		return []*weftv1.Violation{{Object: nametest.Parse("chain ip6 weft nat-prerouting"), Message: "cannot allocate memory", Reason: weftv1.Violation_REASON_KERNEL}}
	})
	src.deliver(setService("nine", 0, "10.96.0.4", "fd00::9"), setSlice("nine", ipv4, "10.244.0.4"))
	await(t, "IPv4 alone", func() bool { return f.served() == all(4) && six() == "fd00::3" })
	await(t, "the family that stays to be reported", func() bool {
		err := frontend.Degraded()
		return err != nil && strings.Contains(err.Error(), "IPv6 stays as it was") && strings.Contains(err.Error(), "cannot allocate memory") && frontend.Ready() == nil
	})
	nine := model.Key{Namespace: "default", Name: "nine"}
	if o := frontend.publisher.Outcome(nine); o.State != publish.Wanted || o.Revision != 0 || o.Reason == nil {
		t.Errorf("a Service without its IPv6: %+v", o)
	}
	if o := frontend.publisher.Outcome(model.Key{Namespace: "default", Name: "s0"}); o.State != publish.InForce {
		t.Errorf("a Service of IPv4: %+v", o)
	}
	clock.Move(time.Minute - 1)
	if got := probes(frontend); got != "200 200" {
		t.Errorf("/healthz and /livez are %s before the time is up", got)
	}
	src.deliver(setService("s4", 0, "10.96.0.5"), setSlice("s4", ipv4, "10.244.0.5"))
	await(t, "one more of IPv4", func() bool { return f.served() == all(5) })
	clock.Move(1)
	if got := probes(frontend); got != "503 200" {
		t.Errorf("/healthz and /livez are %s, though a family is late", got)
	}
	f.Judge(nil)
	await(t, "IPv6 again", func() bool { return six() == "fd00::3 fd00::9" })
	await(t, "the Service as a whole", func() bool { return frontend.publisher.Outcome(nine).State == publish.InForce })
	await(t, "health", func() bool {
		return frontend.Status().Pending.IsZero() && probes(frontend) == "200 200" && frontend.Degraded() == nil
	})
}

// TestUnusedFamilyRefused has a kernel that refuses IPv6, and no Service with it: the
// node is healthy.
//
// Behaviour: 96, 125.
func TestUnusedFamilyRefused(t *testing.T) {
	f, clock := newFake(t), publishtest.NewClock()
	// Twice: as it is, and once more as a whole. Then the family is set aside.
	refusals := 0
	f.Judge(func(map[string]string) []*weftv1.Violation {
		if refusals == 2 {
			return nil
		}
		refusals++
		return []*weftv1.Violation{{Object: nametest.Parse("table ip6 weft"), Message: "operation not supported", Reason: weftv1.Violation_REASON_KERNEL}}
	})
	frontend, _ := run(t, Config{Source: newScript(append(many(3), setNode(netip.MustParseAddr("192.0.2.1")))...), Socket: f.Socket, Now: clock.Now, SyncPeriod: 30 * time.Second})
	await(t, "IPv4 to be served", func() bool { return f.served() == all(3) && frontend.Status().Pending.IsZero() })
	clock.Move(time.Hour)
	// A fourth update would be that with the family.
	if got, n := probes(frontend), f.count(); got != "200 200" || n != 3 {
		t.Errorf("/healthz and /livez are %s after %d updates, want 200 200 after 3", got, n)
	}
	if err := frontend.Degraded(); err != nil {
		t.Errorf("what no Service needs is reported: %v", err)
	}
}
