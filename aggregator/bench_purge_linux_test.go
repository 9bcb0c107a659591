package aggregator_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// timedKernel measures what the removal of entries asks of the kernel.
type timedKernel struct {
	*kernel.Conn
	mu        sync.Mutex
	read, cpu time.Duration
	slowest   time.Duration
	removed   int
}

func (k *timedKernel) DumpSet(id nft.TableID, set *set.Set) ([]set.Element, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, cpu := time.Now(), threadTime()
	defer func() {
		k.mu.Lock()
		k.read, k.cpu = max(k.read, time.Since(began)), max(k.cpu, threadTime()-cpu)
		k.mu.Unlock()
	}()
	return k.Conn.DumpSet(id, set)
}

// threadTime is what the thread has had of the processor.
func threadTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (k *timedKernel) Commit(ops []kernel.Op) (kernel.Stats, error) {
	began := time.Now()
	stats, err := k.Conn.Commit(ops)
	if del, ok := ops[0].(kernel.DeleteElements); ok && del.Set.Name == "affinity" {
		k.mu.Lock()
		k.slowest, k.removed = max(k.slowest, time.Since(began)), k.removed+len(del.Elements)
		k.mu.Unlock()
	}
	return stats, err
}

// BenchmarkPurge removes a backend that has a share of 65,536 entries, while another
// publisher sends one update after the other. It reports the longest time of reading the
// map (read; cpu is its CPU time), the slowest batch of removals (chunk), the slowest
// update of the other publisher (other), and the time until all entries are gone (ms).
func BenchmarkPurge(b *testing.B) {
	const entries = 65536
	for _, backends := range []int{100, 10, 1} {
		b.Run(fmt.Sprintf("one of %d backends", backends), func(b *testing.B) {
			var gone, read, cpu, chunk, other []time.Duration
			for b.Loop() {
				conn, err := kernel.Open(kernel.Config{NetNS: nfttest.New(b).FD()})
				if err != nil {
					b.Fatal(err)
				}
				k := &timedKernel{Conn: conn}
				all, slowest := purgeOnce(b, k, backends, entries)
				gone, other = append(gone, all), append(other, slowest)
				read, cpu, chunk = append(read, k.read), append(cpu, k.cpu), append(chunk, k.slowest)
				_ = conn.Close()
			}
			report(b, gone, map[string][]time.Duration{"read": read, "cpu": cpu, "chunk": chunk, "other": other})
		})
	}
}

// purgeOnce returns how long it took until the entries of one backend were gone,
// and the slowest update of another publisher meanwhile.
func purgeOnce(b *testing.B, k *timedKernel, backends, entries int) (all, slowest time.Duration) {
	b.Helper()
	ctx := context.Background()
	d := aggregatortest.Start(b, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Rate: rate.Inf, Retry: 50 * time.Millisecond}})
	defer func() { _ = d.Stop() }()
	c, err := client.Dial(ctx, client.Config{Socket: d.Socket, Publisher: "tester"})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	names := make([]string, backends)
	for i := range names {
		names[i] = fmt.Sprintf("10.1.%d.%d", i>>8, i&255)
	}
	for _, f := range []*weftv1.Fragment{sticky(names...), blocklist("other", "10.0.0.1")} {
		if _, err := c.Apply(ctx, f); err != nil {
			b.Fatal(err)
		}
	}
	fill(b, k.Conn, names, entries)
	want := (entries + backends - 1) / backends
	began := time.Now()
	if _, err := c.Apply(ctx, sticky(names[1:]...)); err != nil {
		b.Fatal(err)
	}
	for i := 0; ; i++ {
		sent := time.Now()
		if _, err := c.Apply(ctx, blocklist("other", fmt.Sprintf("10.0.%d.%d", i>>8&255, i&255))); err != nil {
			b.Fatal(err)
		}
		slowest = max(slowest, time.Since(sent))
		k.mu.Lock()
		done := k.removed >= want
		k.mu.Unlock()
		if time.Since(began) > time.Minute {
			b.Fatal("the entries do not go")
		}
		if done {
			return time.Since(began), slowest
		}
	}
}

// fill puts entries into the map, as packets of as many clients would.
func fill(b *testing.B, conn *kernel.Conn, backends []string, entries int) {
	b.Helper()
	dump, err := conn.Dump()
	if err != nil {
		b.Fatal(err)
	}
	s := dump[0].Sets[0].Decl
	if s.Name != "affinity" {
		s = dump[0].Sets[1].Decl
	}
	packed := make([]set.Element, entries)
	for i := range packed {
		e := nft.Element{Key: fmt.Sprintf("10.%d.%d.%d", 9+i>>16, i>>8&255, i&255), Value: backends[i%len(backends)] + " . 8080", Timeout: 3 * time.Hour}
		if packed[i], err = s.Pack(e); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := conn.Commit([]kernel.Op{kernel.AddElements{Table: demo, Set: s, Elements: packed}}); err != nil {
		b.Fatal(err)
	}
}
