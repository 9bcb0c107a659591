package policy

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/policy/judge"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/render"
)

// tracked is a connection tracking table, and a renderer that denies all to the address
// denied.
type tracked struct {
	mu       sync.Mutex
	flows    []client.Flow
	err      error
	denied   netip.Addr
	recheck  map[netip.Addr]time.Time
	limited  bool
	listings []time.Time
	asked    []netip.Addr
	log      strings.Builder
}

func (f *tracked) Judge(flow judge.Flow, local func(netip.Addr) bool) (v judge.Verdict) {
	v.Ends[model.Egress].Allowed = true
	v.Ends[model.Ingress].Allowed = flow.Destination != f.denied || local(flow.Source)
	v.Allowed = v.Ends[model.Ingress].Allowed
	return v
}

func (f *tracked) Rechecked() (out []render.Rechecked) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range slices.SortedFunc(maps.Keys(f.recheck), netip.Addr.Compare) {
		out = append(out, render.Rechecked{Addr: a, Committed: f.recheck[a]})
	}
	return out
}

func (f *tracked) EndRecheck(looked []render.Rechecked, denied map[netip.Addr]struct{}) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range looked {
		if _, keep := denied[l.Addr]; !keep && f.recheck[l.Addr].Equal(l.Committed) {
			delete(f.recheck, l.Addr)
			changed = true
		}
	}
	if _, ok := denied[f.denied]; ok && f.denied.IsValid() {
		if _, ok := f.recheck[f.denied]; !ok {
			f.recheck[f.denied] = time.Now()
		}
	}
	return changed
}

func (f *tracked) LimitRecheck(limited bool) { f.limited = limited }

func (f *tracked) ListFlows(_ context.Context, addrs []netip.Addr, each func([]client.Flow) error) error {
	return f.list(addrs, each)
}

func (f *tracked) ListAllFlows(_ context.Context, each func([]client.Flow) error) error {
	return f.list(nil, each)
}

func (f *tracked) list(addrs []netip.Addr, each func([]client.Flow) error) error {
	f.mu.Lock()
	f.listings, f.asked = append(f.listings, time.Now()), addrs
	var found []client.Flow
	for _, e := range f.flows {
		if addrs == nil || slices.Contains(addrs, e.Source.Addr()) || slices.Contains(addrs, e.ReplySource.Addr()) {
			found = append(found, e)
		}
	}
	err := f.err
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return each(found)
}

func (f *tracked) DeleteFlows(_ context.Context, flows []client.Flow) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := len(f.flows)
	f.flows = slices.DeleteFunc(f.flows, func(e client.Flow) bool { return slices.Contains(flows, e) })
	return was - len(f.flows), nil
}

// narrow rechecks addresses as of now.
func (f *tracked) narrow(addrs ...netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range addrs {
		f.recheck[a] = time.Now()
	}
}

// list returns the rechecked addresses.
func (f *tracked) String() string {
	var all []string
	for _, r := range f.Rechecked() {
		all = append(all, r.Addr.String())
	}
	return strings.Join(all, " ")
}

// Write implements io.Writer for the log.
func (f *tracked) Write(b []byte) (int, error) { return f.log.Write(b) }

var (
	flowClient = netip.MustParseAddr("10.0.0.1")
	flowServer = netip.MustParseAddr("10.0.0.2")
	flowNode   = netip.MustParseAddr("10.0.0.254")
)

// entry is a connection from an address through a Service to the server.
func entry(from netip.Addr, protocol uint8, state weftv1.TCPState) client.Flow {
	return client.Flow{
		Protocol: protocol, Source: netip.AddrPortFrom(from, 1000), Destination: netip.MustParseAddrPort("10.96.0.1:80"),
		ReplySource: netip.AddrPortFrom(flowServer, 80), ReplyDestination: netip.AddrPortFrom(from, 1000), TCPState: state,
	}
}

// runTracked runs flows on a fake clock until the test ends.
func runTracked(t *testing.T, table *tracked) *flows {
	t.Helper()
	m, err := newFlowMetrics(nil, nil)
	must(t, err)
	f := &flows{
		renderer: table, connect: func(context.Context) (flowTable, error) { return table, nil },
		addresses: func() ([]netip.Addr, error) { return []netip.Addr{flowNode}, nil },
		changed:   func() {}, answerTime: answerTime, now: time.Now, metrics: m,
		log: slog.New(slog.NewTextHandler(table, nil)), committed: make(chan struct{}, 1),
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return f
}

// TestFlows cuts connections on a fake clock.
//
// Policy behaviour: 47.
func TestFlows(t *testing.T) {
	inBubble(t, "without denied connections", func(t *testing.T, f *flows, table *tracked) {
		table.flows = []client.Flow{entry(flowClient, 6, weftv1.TCPState_TCP_STATE_ESTABLISHED)}
		table.narrow(flowServer)
		f.notify()
		table.pass(commitAge - time.Millisecond)
		if table.String() == "" {
			t.Error("listed less than a second after the commit")
		}
		table.pass(time.Second)
		if table.String() != "" || len(table.flows) != 1 || testutil.ToFloat64(f.metrics.judged) != 1 {
			t.Errorf("rechecked: %s; %d connections", table, len(table.flows))
		}
	})
	inBubble(t, "denied ones are deleted, but not what comes from the node", func(t *testing.T, f *flows, table *tracked) {
		table.denied = flowServer
		table.flows = []client.Flow{
			entry(flowClient, 17, 0), entry(flowClient, 1, 0), entry(flowNode, 17, 0),
			entry(flowClient, 6, weftv1.TCPState_TCP_STATE_TIME_WAIT),
		}
		table.narrow(flowServer)
		f.notify()
		table.pass(answerTime - time.Millisecond)
		// The closed one alone is deleted while answers may be on their way.
		if table.String() != flowServer.String() || len(table.flows) != 3 || testutil.ToFloat64(f.metrics.deleted) != 1 {
			t.Errorf("before the answers have come, rechecked: %s; %v", table, table.flows)
		}
		table.pass(answerTime)
		table.pass(answerTime)
		if table.String() != "" || len(table.flows) != 1 || testutil.ToFloat64(f.metrics.deleted) != 3 {
			t.Errorf("rechecked: %s; %v", table, table.flows)
		}
	})
	inBubble(t, "an open TCP connection keeps both ends, and another address does not wait for it", func(t *testing.T, f *flows, table *tracked) {
		table.denied = flowServer
		table.flows = []client.Flow{entry(flowClient, 6, weftv1.TCPState_TCP_STATE_ESTABLISHED), entry(flowClient, 132, 0), {}}
		table.narrow(flowServer, flowClient)
		f.notify()
		table.pass(time.Hour)
		if n := len(table.listings); n < 60 || n > 66 {
			t.Errorf("%d listings in an hour", n)
		}
		other := netip.MustParseAddr("fd00::9")
		table.narrow(other)
		f.notify()
		table.pass(2 * time.Second)
		if table.String() != "10.0.0.1 10.0.0.2" || len(table.flows) != 3 || !slices.Contains(table.asked, other) {
			t.Errorf("rechecked: %s; asked for %s", table, table.asked)
		}
		table.mu.Lock()
		table.flows = nil
		table.mu.Unlock()
		table.pass(time.Minute)
		if table.String() != "" {
			t.Errorf("after the connection: %s", table)
		}
	})
	inBubble(t, "all connections", func(t *testing.T, f *flows, table *tracked) {
		table.denied = flowServer
		table.flows = []client.Flow{entry(flowClient, 6, weftv1.TCPState_TCP_STATE_ESTABLISHED)}
		table.narrow(netip.IPv4Unspecified(), netip.IPv6Unspecified())
		f.notify()
		table.pass(2 * time.Second)
		if table.String() != "10.0.0.2" {
			t.Errorf("rechecked: %s; asked for %s", table, table.asked)
		}
	})
	inBubble(t, "many commits", func(t *testing.T, f *flows, table *tracked) {
		for i := range 1000 {
			table.narrow(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
			f.notify()
			table.pass(10 * time.Millisecond)
		}
		if n := len(table.listings); n > 10 {
			t.Errorf("%d listings in 10 seconds", n)
		}
	})
}

// TestFlowsErrors has a table that cannot be listed.
func TestFlowsErrors(t *testing.T) {
	inBubble(t, "no right", func(t *testing.T, f *flows, table *tracked) {
		table.err = client.ErrPermission
		table.narrow(flowServer)
		f.notify()
		table.pass(10 * time.Minute)
		if !table.limited || len(table.listings) > 12 || strings.Count(table.log.String(), "flows: true") != 1 {
			t.Errorf("limited %v, %d listings, log: %s", table.limited, len(table.listings), table.log.String())
		}
		table.mu.Lock()
		table.err = nil
		table.mu.Unlock()
		table.pass(2 * time.Minute)
		if table.limited || table.String() != "" || !strings.Contains(table.log.String(), "can be listed") {
			t.Errorf("with the right: limited %v, rechecked %s, log: %s", table.limited, table, table.log.String())
		}
	})
	inBubble(t, "an older aggregator", func(t *testing.T, f *flows, table *tracked) {
		table.err = errors.ErrUnsupported
		table.narrow(flowServer)
		f.notify()
		table.pass(2 * time.Second)
		if !table.limited {
			t.Error("the recheck has no time limit")
		}
	})
	inBubble(t, "no aggregator", func(t *testing.T, f *flows, table *tracked) {
		table.err = client.ErrUnavailable
		table.narrow(flowServer)
		f.notify()
		table.pass(10 * time.Minute)
		if n := len(table.listings); table.limited || n < 10 || n > 16 {
			t.Errorf("limited %v, %d listings in 10 minutes", table.limited, n)
		}
	})
}

// inBubble runs a test with a clock of its own.
func inBubble(t *testing.T, name string, test func(*testing.T, *flows, *tracked)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			table := &tracked{recheck: make(map[netip.Addr]time.Time)}
			f := runTracked(t, table)
			synctest.Wait()
			test(t, f, table)
		})
	})
}

// pass lets time pass. The lock orders what the test has read and written before what flows do then.
func (f *tracked) pass(d time.Duration) {
	f.mu.Lock()
	f.mu.Unlock() //nolint:staticcheck // for its order
	<-time.After(d)
	synctest.Wait()
}

// TestInterfaceAddresses expects the loopback address.
func TestInterfaceAddresses(t *testing.T) {
	all, err := interfaceAddresses()
	if err != nil || !slices.ContainsFunc(all, netip.Addr.IsLoopback) {
		t.Errorf("%v, %v", all, err)
	}
}
