package aggregator_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

// acceptor is a kernel that accepts everything and keeps nothing but the ops of the
// last commit: what is measured beside it is weft's.
type acceptor struct {
	aggregatortest.Kernel
	mu      sync.Mutex
	handles uint64
	last    []kernel.Op
}

func (k *acceptor) Commit(ops []kernel.Op) (kernel.Stats, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = ops
	for _, op := range ops {
		if add, ok := op.(kernel.AddRule); ok {
			k.handles++
			add.Handle.N = k.handles
		}
	}
	return kernel.Stats{}, nil
}

func (k *acceptor) Dump() ([]kernel.Table, error)  { return nil, nil }
func (k *acceptor) Adopt() ([]kernel.Table, error) { return nil, nil }

// forget lets go of the last commit.
func (k *acceptor) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = nil
}

// sent returns the messages and bytes of the last commit.
func (k *acceptor) sent(t *testing.T) (messages, size int) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	b, err := kernel.Encode(k.last)
	must(t, err)
	for rest := b; len(rest) > 0; messages++ {
		rest = rest[min(len(rest), int(binary.NativeEndian.Uint32(rest)+3)&^3):]
	}
	return messages, len(b)
}

// updateCost is what an update made weft do.
type updateCost struct {
	// work is weft_aggregator_work_total by kind.
	work            map[string]float64
	messages, bytes int
	// allocated are the bytes that an update made all of the process allocate.
	allocated uint64
}

// publisher is a session in this process, and the daemon that it is with.
type publisher struct {
	t       *testing.T
	daemon  *aggregatortest.Daemon
	session *aggregator.Session
	id      uint64
}

func newPublisher(t *testing.T, k aggregator.Kernel, reg prometheus.Registerer) *publisher {
	t.Helper()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: t.TempDir(), Rate: rate.Inf, Registerer: reg}})
	session, err := d.Aggregator.Session("services", 1, 0)
	must(t, err)
	t.Cleanup(session.Close)
	return &publisher{t: t, daemon: d, session: session}
}

// push sends an update and waits until the writer is done with it.
func (p *publisher) push(req *weftv1.PublishRequest) {
	p.t.Helper()
	p.id++
	req.Id = p.id
	done, err := p.session.Push(req)
	must(p.t, err)
	if r := <-done; r.Err != nil {
		p.t.Fatal(r.Err)
	}
	// The writer answers before it counts: a read comes after both.
	if _, _, err := p.daemon.Aggregator.Get(context.Background(), "services", "nothing"); err == nil {
		p.t.Fatal("there is a fragment that no publisher has sent")
	}
}

func (p *publisher) snapshot(f *weftv1.Fragment) {
	p.t.Helper()
	p.push(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}})
}

func (p *publisher) patch(patch *weftv1.Patch) {
	p.t.Helper()
	p.push(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Patch{Patch: patch}})
}

// costOf measures the patches that turns make, on a daemon that holds a fragment. Each
// is made twice before.
func costOf(t *testing.T, f *weftv1.Fragment, patches map[string]func(turn int) *weftv1.Patch) map[string]updateCost {
	t.Helper()
	k, reg := &acceptor{}, prometheus.NewPedanticRegistry()
	p := newPublisher(t, k, reg)
	p.snapshot(f)
	costs := map[string]updateCost{}
	for name, patch := range patches {
		turn := 0
		apply := func() {
			turn++
			p.patch(patch(turn))
		}
		apply()
		apply()
		before := values(t, reg, "weft_aggregator_work_total")
		apply()
		c := updateCost{work: values(t, reg, "weft_aggregator_work_total")}
		for kind := range c.work {
			c.work[kind] -= before[kind]
		}
		c.messages, c.bytes = k.sent(t)
		const updates = 50
		var m [2]runtime.MemStats
		runtime.ReadMemStats(&m[0])
		for range updates {
			apply()
		}
		runtime.ReadMemStats(&m[1])
		c.allocated = (m[1].TotalAlloc - m[0].TotalAlloc) / updates
		costs[name] = c
	}
	return costs
}

// ownChain is a chain of one service alone; turn varies its rule.
func ownChain(n, turn int) *weftv1.Chain {
	return &weftv1.Chain{Name: fmt.Sprintf("own-%05d", n), Rules: []*weftv1.Rule{{Text: fmt.Sprintf("meta mark %#x return", 1<<20+turn)}}}
}

// TestCostIsThatOfTheChange makes the same small updates of a fragment of 100 and of
// one of 10,000 services, with a chain each: the writer looks at as many elements, rules and objects,
// sends the kernel as much, reads nothing back, and writes nothing to the disk.
func TestCostIsThatOfTheChange(t *testing.T) {
	costs := func(count int) map[string]updateCost {
		s := Services{Count: count, Endpoints: 10}
		f := s.Fragment()
		for n := range count {
			f.Tables[0].Chains = append(f.Tables[0].Chains, ownChain(n, 0))
		}
		return costOf(t, f, map[string]func(int) *weftv1.Patch{
			"endpoint": func(turn int) *weftv1.Patch { return s.ReplaceEndpoint(7, 3, turn) },
			"rules":    s.ReplaceRules,
			"chain": func(turn int) *weftv1.Patch {
				return &weftv1.Patch{Fragment: "services", Tables: []*weftv1.TablePatch{{
					Family: "ip", Name: "weft", PutChains: []*weftv1.Chain{ownChain(7, turn)},
				}}}
			},
		})
	}
	small, large := costs(100), costs(10_000)
	for name, s := range small {
		l := large[name]
		t.Logf("%s: %v, %d messages, %d bytes; %d and %d bytes allocated", name, l.work, l.messages, l.bytes, s.allocated, l.allocated)
		if !maps.Equal(s.work, l.work) {
			t.Errorf("%s: work is %v of 100 services and %v of 10,000: want the same", name, s.work, l.work)
		}
		if s.messages != l.messages || s.bytes != l.bytes || s.messages == 0 {
			t.Errorf("%s: %d messages of %d bytes to the kernel with 100 services, %d of %d with 10,000: want the same", name, s.messages, s.bytes, l.messages, l.bytes)
		}
		if l.work["dumps"] != 0 || l.work["records"] != 0 {
			t.Errorf("%s: %v dumps and %v records written: want none", name, l.work["dumps"], l.work["records"])
		}
		// Whatever copied the fragment, in part even, would take megabytes.
		if l.allocated > 2*s.allocated {
			t.Errorf("%s: %d bytes allocated with 100 services and %d with 10,000: want about the same", name, s.allocated, l.allocated)
		}
	}
	if small["endpoint"].work["keys"] == 0 || small["rules"].work["rules"] == 0 {
		t.Errorf("work is not counted: %v", small)
	}
}

// heap returns the bytes of the heap that are in use.
func heap() int {
	// Twice: what is in a sync.Pool outlives the first.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) //nolint:gosec // less than there is memory
}

// TestNothingIsKeptOfAnUpdate holds the daemon to what merge.State needs for an
// element: neither the request, nor what it was packed into, nor the batch may be
// left of a snapshot that was committed.
func TestNothingIsKeptOfAnUpdate(t *testing.T) {
	s := Services{Count: 10_000, Endpoints: 10}
	k := &acceptor{}
	p := newPublisher(t, k, nil)
	before := heap()
	p.snapshot(s.Fragment())
	k.forget()
	snapshot := (heap() - before) / s.Elements()
	for n := range s.Count / 10 {
		p.patch(s.ReplaceEndpoint(10*n, 0, 1))
	}
	k.forget()
	patched := (heap() - before) / s.Elements()
	t.Logf("%d bytes per element after the snapshot, %d after patches", snapshot, patched)
	// A request has 150 bytes and more per element, a compile.Element 72.
	if most := 72; snapshot > most || patched > most {
		t.Errorf("%d bytes per element after the snapshot, %d after patches: want %d at most", snapshot, patched, most)
	}
}

// Services is a data plane of Count services with Endpoints endpoints each, TCP and
// UDP in turns, for tests and benchmarks of sizes: a map of services that leads to a
// chain, and a map of their endpoints, from which the chain's rule picks one.
type Services struct{ Count, Endpoints int }

// Elements is the number of elements in its two maps.
func (s Services) Elements() int { return s.Count * (s.Endpoints + 1) }

// key is that of service n. It has the same length for each when packed.
func (s Services) key(n int) string {
	return fmt.Sprintf("10.%d.%d.%d . %s . 80", 96+n>>16, n>>8&255, n&255, []string{"tcp", "udp"}[n%2])
}

// Endpoint returns endpoint e of service n; turn varies its port.
func (s Services) Endpoint(n, e, turn int) *weftv1.Element {
	at := n*s.Endpoints + e
	return &weftv1.Element{
		Key:   fmt.Sprintf("%s . %d", s.key(n), e),
		Value: fmt.Sprintf("10.%d.%d.%d . %d", 128+at>>16, at>>8&255, at&255, 8080+turn),
	}
}

// chain is the name of the chain that picks an endpoint.
func (s Services) chain() string { return fmt.Sprintf("pick-%d", s.Endpoints) }

// rule is the chain's rule; turn varies its comment.
func (s Services) rule(turn int) *weftv1.Rule {
	pick := "meta l4proto { tcp, udp, sctp } dnat ip to ip daddr . meta l4proto . th dport . numgen random mod %d map @endpoints"
	return &weftv1.Rule{Text: fmt.Sprintf(pick, s.Endpoints), Comment: fmt.Sprint("turn ", turn)}
}

// Fragment returns the fragment "services", in table ip weft.
func (s Services) Fragment() *weftv1.Fragment {
	services := &weftv1.Set{Name: "services", Typeof: "ip daddr . meta l4proto . th dport : verdict"}
	endpoints := &weftv1.Set{Name: "endpoints", Role: weftv1.MapRole_MAP_ROLE_CONNTRACK, Typeof: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"}
	for n := range s.Count {
		services.Elements = append(services.Elements, &weftv1.Element{Key: s.key(n), Value: "goto " + s.chain()})
		for e := range s.Endpoints {
			endpoints.Elements = append(endpoints.Elements, s.Endpoint(n, e, 0))
		}
	}
	return &weftv1.Fragment{Name: "services", Tables: []*weftv1.Table{{
		Family: "ip", Name: "weft", Maps: []*weftv1.Set{services, endpoints},
		Chains: []*weftv1.Chain{
			{Name: s.chain(), Rules: []*weftv1.Rule{s.rule(0)}},
			{
				Name: "nat-prerouting", Type: "nat", Hook: "prerouting", Priority: "dstnat",
				Rules: []*weftv1.Rule{{Text: "ip daddr . meta l4proto . th dport vmap @services"}},
			},
		},
	}}}
}

// ReplaceEndpoint is the patch that replaces one endpoint.
func (s Services) ReplaceEndpoint(n, e, turn int) *weftv1.Patch {
	return &weftv1.Patch{Fragment: "services", Tables: []*weftv1.TablePatch{{
		Family: "ip", Name: "weft",
		Elements: []*weftv1.ElementPatch{{Set: "endpoints", Add: []*weftv1.Element{s.Endpoint(n, e, turn)}}},
	}}}
}

// ReplaceRules is the patch that replaces the rules of one chain.
func (s Services) ReplaceRules(turn int) *weftv1.Patch {
	return &weftv1.Patch{Fragment: "services", Tables: []*weftv1.TablePatch{{
		Family: "ip", Name: "weft",
		PutChains: []*weftv1.Chain{{Name: s.chain(), Rules: []*weftv1.Rule{s.rule(turn)}}},
	}}}
}
