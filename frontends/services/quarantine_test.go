package services

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

const ipv4 = discoveryv1.AddressTypeIPv4

// many returns Services s0 to s(n-1), each with the endpoint 10.244.0.(i+1).
func many(n int) (out []any) {
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		out = append(out, setService(name, 0, fmt.Sprintf("10.96.0.%d", i+1)), setSlice(name, ipv4, fmt.Sprintf("10.244.0.%d", i+1)))
	}
	return out
}

func endpointOf(i int) string { return fmt.Sprintf("10.244.0.%d . 8080", i+1) }

// all lists the addresses of n Services but some.
func all(n int, but ...int) string {
	var out []string
next:
	for i := range n {
		for _, b := range but {
			if i == b {
				continue next
			}
		}
		out = append(out, fmt.Sprintf("10.96.0.%d", i+1))
	}
	return strings.Join(out, " ")
}

// TestRefusedServices has bad Services among good ones: the good ones are published
// and go on changing, and the node is healthy. Each bad one has one event and one line in the log.
//
// Behaviour: 169.
func TestRefusedServices(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprintf("named=%t", named), func(t *testing.T) {
			f := newFake(t)
			f.Judge(poisoned(named, endpointOf(2), endpointOf(5)))
			src, clock := newScript(append(many(8), setNode(netip.MustParseAddr("192.0.2.1")))...), publishtest.NewClock()
			var events notes
			var log lines
			frontend, _ := run(t, Config{Source: src, Socket: f.Socket, Events: &events, Now: clock.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			await(t, "the good Services", func() bool { return f.served() == all(8, 2, 5) })
			await(t, "the list of bad ones", func() bool {
				err := frontend.Degraded()
				return strings.Join(frontend.Status().Quarantined, " ") == "default/s2 default/s5" && err != nil && strings.HasSuffix(err.Error(), "2 refused: default/s2, default/s5")
			})
			for _, name := range []string{"default/s2", "default/s5"} {
				want := name + " Warning ServiceRefused its rules are rejected, so it does not work on node node-1: "
				if got := events.String(); strings.Count(got, want) != 1 || !strings.Contains(got, "operation not supported") || strings.Count(log.String(), "items=["+name) != 1 {
					t.Errorf("events:\n%s\nlog:\n%s", got, log.String())
				}
			}
			await(t, "the acknowledgement", func() bool { return frontend.Status().Pending.IsZero() })
			clock.Move(time.Hour)
			if got := probes(frontend); got != "200 200" {
				t.Errorf("refused Services make the node %s", got)
			}
			// Others change without them.
			src.deliver(setService("s8", 0, "10.96.0.9"), setSlice("s8", ipv4, "10.244.0.9"))
			await(t, "a new Service", func() bool { return f.served() == all(9, 2, 5) })
			// One is repaired, one is deleted.
			src.deliver(setSlice("s2", ipv4, "10.244.1.1"), serviceGone("s5"))
			await(t, "the repaired Service", func() bool { return f.served() == all(9, 5) })
			await(t, "an empty list", func() bool { return len(frontend.Status().Quarantined) == 0 })
			// A Service that is there turns bad.
			f.Judge(poisoned(named, "10.244.6.6 . 8080"))
			src.deliver(setSlice("s0", ipv4, "10.244.6.6"), setSlice("s1", ipv4, "10.244.7.7"))
			await(t, "the other change", func() bool {
				return f.Elements()[object("ip", "endpoints", "10.96.0.2 . tcp . 80 . 0")] == "10.244.7.7 . 8080"
			})
			await(t, "going on without it", func() bool { return f.served() == all(9, 0, 5) })
		})
	}
}

func TestPassingRefusal(t *testing.T) {
	f := newFake(t)
	n := 0
	f.Judge(func(map[string]string) []*weftv1.Violation {
		if n++; n > 1 {
			return nil
		}
		return []*weftv1.Violation{{Message: "out of memory", Reason: weftv1.Violation_REASON_KERNEL}}
	})
	frontend, _ := run(t, Config{Source: newScript(many(3)...), Socket: f.Socket})
	await(t, "all Services", func() bool { return f.served() == all(3) })
	await(t, "the acknowledgement", func() bool { return frontend.Status().Published })
	if q := frontend.Status().Quarantined; len(q) != 0 || f.count() != 2 {
		t.Errorf("after %v quarantined %v", f.Updates(), q)
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
