package aggregator_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// heapInUse is the size of the live heap.
func heapInUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// largeList returns a durable fragment with 500,000 elements.
func largeList() *weftv1.Fragment {
	f := durable(blocklist("list"))
	set := f.Tables[0].Sets[0]
	for i := range 500_000 {
		set.Elements = append(set.Elements, &weftv1.Element{Key: fmt.Sprintf("11.%d.%d.%d", i>>16, i>>8&255, i&255)})
	}
	return f
}

// BenchmarkDurable is what a durable fragment of 500,000 elements costs others
// while it gets 20 patches of an element a second: the 99th percentile of another
// publisher's patches, and what the heap grows by. Both are parts of what is
// allowed.
func BenchmarkDurable(b *testing.B) {
	nfttest.Require(b, nfttest.Namespaces)
	const patches = 100
	for b.Loop() {
		ns, ctx := nfttest.New(b), b.Context()
		d, _ := startKernel(b, ns, aggregator.Config{StateDir: b.TempDir()}, false)
		one, err := d.Aggregator.Session("one", 1, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer one.Close()
		push := func(s *aggregator.Session, req *weftv1.PublishRequest) {
			c, err := s.Push(req)
			if err != nil {
				b.Error(err)
				return
			}
			if r := <-c; r.Err != nil {
				b.Error(r.Err)
			}
		}
		push(one, snapshotOf(1, largeList()))
		two, err := d.Aggregator.Session("two", 2, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer two.Close()
		small := blocklist("small", "10.0.0.1")
		small.Tables[0].Name = "other"
		push(two, snapshotOf(1, small))
		before, grown := heapInUse(), 0.0
		var took []time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for i := range patches {
				push(one, patchOf(uint64(i+2), patch("list", []string{fmt.Sprintf("10.0.0.%d", i)}, nil))) //nolint:gosec // a count
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
		for i := range 2 * patches {
			p := patch("small", []string{fmt.Sprintf("10.0.0.%d", i)}, nil)
			p.Tables[0].Name = "other"
			began := time.Now()
			push(two, patchOf(uint64(i+2), p)) //nolint:gosec // a count
			took = append(took, time.Since(began))
			if i%50 == 49 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				grown = max(grown, float64(m.HeapAlloc)-before)
			}
		}
		wg.Wait()
		grown = max(grown, heapInUse()-before)
		slices.Sort(took)
		p99 := took[len(took)*99/100]
		b.ReportMetric(p99.Seconds()*1000, "p99-ms")
		b.ReportMetric(p99.Seconds()/0.060, "of-60ms")
		b.ReportMetric(grown/(1<<20), "grown-MiB")
		b.ReportMetric(grown/(64<<20), "of-64MiB")
		_ = d.Stop()
	}
}

// BenchmarkRestore is the time until 1,000 durable fragments are in force after a
// reboot, as a part of a second.
func BenchmarkRestore(b *testing.B) {
	nfttest.Require(b, nfttest.Namespaces)
	dir := b.TempDir()
	storeMany(b, dir, 1000)
	var took time.Duration
	n := 0
	for b.Loop() {
		ns := nfttest.New(b)
		began := time.Now()
		d, _ := startKernel(b, ns, aggregator.Config{StateDir: dir}, false)
		took += time.Since(began)
		n++
		if fragments, _ := d.Aggregator.List(); len(fragments) != 1000 {
			b.Fatalf("%d fragments are restored", len(fragments))
		}
		_ = d.Stop()
	}
	b.ReportMetric(took.Seconds()/float64(n), "of-1s")
}

// storeMany stores n durable fragments, each with a set and a chain of its own.
func storeMany(t testing.TB, dir string, n int) {
	t.Helper()
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}, StateDir: dir, Rate: 1e6, Burst: n}})
	s, err := d.Aggregator.Session("tester", 1, 0)
	must(t, err)
	var answers []<-chan aggregator.Result
	for i := range n {
		f := durable(blocklist(fmt.Sprintf("f%d", i), "10.0.0.1", "10.0.0.2"))
		f.Tables[0].Sets[0].Name = fmt.Sprintf("set%d", i)
		f.Tables[0].Chains = []*weftv1.Chain{{Name: fmt.Sprintf("chain%d", i), Rules: []*weftv1.Rule{{Text: fmt.Sprintf("ip saddr @set%d counter drop", i)}}}}
		c, err := s.Push(snapshotOf(uint64(i+1), f)) //nolint:gosec // a count
		must(t, err)
		answers = append(answers, c)
	}
	for _, c := range answers {
		if r := <-c; r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	must(t, d.Stop())
}
