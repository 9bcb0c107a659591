package aggregator_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
)

const (
	// fairPatches is the number of patches a second of the busy publisher.
	fairPatches = 1000
	// fairElements is the number of elements of the large one.
	fairElements = 100_000
)

// timed is a kernel that notes how long its largest commit took.
type timed struct {
	*kernel.Conn
	mu    sync.Mutex
	worst time.Duration
}

func (k *timed) Commit(ops []kernel.Op) (kernel.Stats, error) {
	began := time.Now()
	stats, err := k.Conn.Commit(ops)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.worst = max(k.worst, time.Since(began))
	return stats, err
}

// BenchmarkFairness measures what a publisher of single elements waits for, from
// its call to the acknowledgement, one update after the other, while another one
// patches 1,000 times a second and a third one pushes 100,000 elements: once, or
// again and again. All of them run in this process, with the aggregator, on the same
// processors.
//
// Reported are the median, the 99th percentile and the worst. The floors are the
// 99th percentile of the publisher when it is alone (alone-p99), and the time in
// the kernel of the one transaction with 100,000 elements (kernel), which cannot
// be interrupted: the worst wait cannot be shorter.
func BenchmarkFairness(b *testing.B) {
	for _, tt := range []struct {
		name    string
		rate    rate.Limit
		samples int
		pushes  int
	}{
		{"default", aggregator.DefaultRate, 200, 1},
		{"unlimited", rate.Inf, 2000, 1},
		{"default-again", aggregator.DefaultRate, 200, 10},
		{"unlimited-again", rate.Inf, 2000, 10},
	} {
		b.Run(tt.name, func(b *testing.B) {
			var alone, beside []time.Duration
			var worst time.Duration
			for b.Loop() {
				f := startFair(b, tt.rate)
				alone = append(alone, f.sample(b, tt.samples)...)
				beside = append(beside, f.crowded(b, tt.samples, tt.pushes)...)
				worst = max(worst, f.kernel.worst)
				f.stop(b)
			}
			b.ReportMetric(0, "ns/op")
			ms := func(d time.Duration, unit string) { b.ReportMetric(float64(d.Microseconds())/1e3, unit) }
			slices.Sort(alone)
			slices.Sort(beside)
			ms(percentile(beside, 50), "p50-ms")
			ms(percentile(beside, 99), "p99-ms")
			ms(beside[len(beside)-1], "max-ms")
			ms(percentile(alone, 99), "alone-p99-ms")
			ms(worst, "kernel-ms")
		})
	}
}

// percentile of sorted durations, by rank: with 200, the 99th is the third worst.
func percentile(d []time.Duration, p int) time.Duration { return d[min(len(d)*p/100, len(d)-1)] }

// fair is a daemon with the three publishers.
type fair struct {
	daemon             *aggregatortest.Daemon
	kernel             *timed
	busy, large, small *client.Session
	turns              int
}

func startFair(b *testing.B, limit rate.Limit) *fair {
	b.Helper()
	_, k := open(b)
	f := &fair{kernel: &timed{Conn: k.Conn}}
	f.daemon = aggregatortest.Start(b, aggregatortest.Config{Config: aggregator.Config{Kernel: f.kernel, StateDir: b.TempDir(), Rate: limit}})
	join := func(publisher string) *client.Session {
		s := f.daemon.Dial(b, publisher).Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment { return fairFragment(publisher, 0, 0) }})
		return s
	}
	f.busy, f.large, f.small = join("busy"), join("large"), join("small")
	for publisher, s := range map[string]*client.Session{"busy": f.busy, "small": f.small} {
		if _, err := s.Put(context.Background(), fairFragment(publisher, 0, 0)); err != nil {
			b.Fatal(err)
		}
	}
	return f
}

func (f *fair) stop(b *testing.B) {
	for _, s := range []*client.Session{f.busy, f.large, f.small} {
		_ = s.Close()
	}
	if err := f.daemon.Stop(); err != nil {
		b.Fatal(err)
	}
}

// fairFragment has n elements in a set of the publisher's own; turn varies them.
func fairFragment(publisher string, n, turn int) *weftv1.Fragment {
	set := &weftv1.Set{Name: "addresses", Type: "ipv4_addr"}
	for i := range n {
		set.Elements = append(set.Elements, fairElement(i, turn))
	}
	return &weftv1.Fragment{Name: "list", Tables: []*weftv1.Table{{Family: "ip", Name: publisher, Sets: []*weftv1.Set{set}}}}
}

func fairElement(i, turn int) *weftv1.Element {
	return &weftv1.Element{Key: fmt.Sprintf("%d.%d.%d.%d", 10+turn%2, i>>16, i>>8&255, i&255)}
}

// flip is a patch that adds an element, or removes it again.
func flip(publisher string, turn int) *weftv1.Patch {
	e := fairElement(turn/2%1000, 0)
	ep := &weftv1.ElementPatch{Set: "addresses", Add: []*weftv1.Element{e}}
	if turn%2 == 1 {
		ep = &weftv1.ElementPatch{Set: "addresses", Remove: []string{e.GetKey()}}
	}
	return &weftv1.Patch{Fragment: "list", Tables: []*weftv1.TablePatch{{Family: "ip", Name: publisher, Elements: []*weftv1.ElementPatch{ep}}}}
}

// sample makes n updates of single elements, one after the other.
func (f *fair) sample(b *testing.B, n int) []time.Duration {
	b.Helper()
	out := make([]time.Duration, 0, n)
	for range n {
		p := flip("small", f.turns)
		f.turns++
		began := time.Now()
		if _, err := f.small.Patch(context.Background(), p); err != nil {
			b.Fatal(err)
		}
		out = append(out, time.Since(began))
	}
	return out
}

// crowded samples beside the other two. The large one begins after a tenth, and
// sampling goes on until its updates are acknowledged.
func (f *fair) crowded(b *testing.B, n, pushes int) []time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { f.patch(ctx) })
	out := f.sample(b, n/10)
	pushed := make(chan error, 1)
	go func() { pushed <- f.push(pushes) }()
	for {
		out = append(out, f.sample(b, 1)...)
		if len(out) < n {
			continue
		}
		select {
		case err := <-pushed:
			if err != nil {
				b.Fatal(err)
			}
			cancel()
			wg.Wait()
			return out
		default:
		}
	}
}

// push puts the large fragment, and each time replaces all its elements.
func (f *fair) push(times int) error {
	for turn := range times {
		if _, err := f.large.Put(context.Background(), fairFragment("large", fairElements, turn)); err != nil {
			return err
		}
	}
	return nil
}

// patch patches until ctx ends, whether or not the answers have come.
func (f *fair) patch(ctx context.Context) {
	tick := time.NewTicker(time.Second / fairPatches)
	defer tick.Stop()
	var last *client.Pending
	for turn := 0; ctx.Err() == nil; turn++ {
		<-tick.C
		last = f.busy.StartPatch(flip("busy", turn))
	}
	// The session is closed only when all is answered.
	_, _ = last.Wait(context.Background())
}
