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
	// work is metricWork by kind.
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
	if err != nil {
		p.t.Fatal(err)
	}
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
		before := workOf(t, reg)
		apply()
		c := updateCost{work: workOf(t, reg)}
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

// workOf reads weft_aggregator_work_total by kind.
func workOf(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	work := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "weft_aggregator_work_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			work[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return work
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
