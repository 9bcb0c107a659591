package aggregator_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// benchServices is the size of the benchmarks: that of DESIGN.md's table.
var benchServices = Services{Count: 10_000, Endpoints: 10}

// recorder is a kernel that keeps the ops of its last commit; at first, those of all.
type recorder struct {
	*kernel.Conn
	mu    sync.Mutex
	ops   []kernel.Op
	taken bool
}

func (r *recorder) Commit(ops []kernel.Op) (kernel.Stats, error) {
	r.mu.Lock()
	if r.taken {
		r.ops = ops
	} else {
		r.ops = append(r.ops, ops...)
	}
	r.mu.Unlock()
	return r.Conn.Commit(ops)
}

// last encodes the last commit as a batch for a bare socket. The first call encodes all
// commits as one batch, because a large update is more than one.
func (r *recorder) last(tb testing.TB) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = true
	b, err := kernel.Encode(r.ops)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// open opens a kernel in a namespace of its own.
func open(tb testing.TB) (*nfttest.NS, *recorder) {
	tb.Helper()
	ns := nfttest.New(tb)
	conn, err := kernel.Open(kernel.Config{NetNS: ns.FD()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return ns, &recorder{Conn: conn}
}

// bare is a netlink socket with nothing around it, not even Go's poller: the
// floor of all floors.
type bare struct {
	fd  int
	buf []byte
}

func openBare(tb testing.TB, ns *nfttest.NS, size int) *bare {
	tb.Helper()
	s := &bare{buf: make([]byte, 64<<10)}
	err := ns.Do(func() (err error) {
		s.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = unix.Close(s.fd) })
	if err := unix.Bind(s.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		tb.Fatal(err)
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 2*size+1<<20); err != nil {
		tb.Fatal(err)
	}
	return s
}

// replay sends a batch and waits for the acknowledgement of its end.
func (s *bare) replay(tb testing.TB, batch []byte) time.Duration {
	tb.Helper()
	began := time.Now()
	if err := unix.Sendto(s.fd, batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		tb.Fatal(err)
	}
	for {
		n, _, err := unix.Recvfrom(s.fd, s.buf, 0)
		if err != nil {
			tb.Fatal(err)
		}
		// struct nlmsghdr begins with length and type; anything but an answer is
		// the echo of a rule, for its handle.
		if binary.NativeEndian.Uint16(s.buf[4:6]) != unix.NLMSG_ERROR {
			continue
		}
		took := time.Since(began)
		// struct nlmsgerr follows, which begins with the errno.
		if errno := int32(binary.NativeEndian.Uint32(s.buf[unix.SizeofNlMsghdr:n])); errno != 0 {
			tb.Fatalf("replay: %v", unix.Errno(-errno))
		}
		return took
	}
}

// plain is a connection of mdlayher/netlink, used in the plainest way: the floor
// for what a Go program does.
type plain struct{ conn *netlink.Conn }

func openPlain(tb testing.TB, ns *nfttest.NS, size int) plain {
	tb.Helper()
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: ns.FD()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetWriteBuffer(2*size + 1<<20); err != nil {
		tb.Fatal(err)
	}
	return plain{conn}
}

// split cuts a batch into messages.
func split(tb testing.TB, batch []byte) []netlink.Message {
	tb.Helper()
	var out []netlink.Message
	for len(batch) > 0 {
		n := binary.NativeEndian.Uint32(batch)
		var m netlink.Message
		if err := m.UnmarshalBinary(batch[:n]); err != nil {
			tb.Fatal(err)
		}
		out = append(out, m)
		batch = batch[min(len(batch), int(n+3)&^3):]
	}
	return out
}

// replay sends a batch and waits for the acknowledgement of its end.
func (p plain) replay(tb testing.TB, batch []netlink.Message) time.Duration {
	tb.Helper()
	began := time.Now()
	if _, err := p.conn.SendMessages(batch); err != nil {
		tb.Fatal(err)
	}
	if _, err := p.conn.Receive(); err != nil {
		tb.Fatal(err)
	}
	return time.Since(began)
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

// report reports the medians of what was measured and of its floor, and the ratio.
func report(b *testing.B, measured, floor []time.Duration) {
	m, f := median(measured), median(floor)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(m.Nanoseconds())/1e6, "ms")
	b.ReportMetric(float64(f.Nanoseconds())/1e6, "floor-ms")
	b.ReportMetric(float64(m)/float64(f), "floor-ratio")
}

// startBench runs a daemon without a limit on commits: what is measured is a
// commit, as it is when the limiter has tokens.
func startBench(b *testing.B, k aggregator.Kernel) (*aggregatortest.Daemon, *client.Session) {
	b.Helper()
	d := aggregatortest.Start(b, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: b.TempDir(), Rate: rate.Inf}})
	c, err := client.Dial(context.Background(), client.Config{Socket: d.Socket, Publisher: "services"})
	must(b, err)
	b.Cleanup(func() { _ = c.Close() })
	s := c.Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment { return nil }})
	b.Cleanup(func() { _ = s.Close() })
	return d, s
}

// BenchmarkSnapshot110k commits 10,000 services with 10 endpoints each through
// client, socket, merge and kernel, and replays the same bytes over a bare
// netlink socket in another namespace.
func BenchmarkSnapshot110k(b *testing.B) {
	f := benchServices.Fragment()
	var measured, floor []time.Duration
	for b.Loop() {
		_, k := open(b)
		d, s := startBench(b, k)
		floorNS := nfttest.New(b)
		runtime.GC()
		began := time.Now()
		must(b, errorOf(s.Put(context.Background(), f)))
		measured = append(measured, time.Since(began))
		batch := k.last(b)
		bare := openBare(b, floorNS, len(batch))
		floor = append(floor, bare.replay(b, batch))
		must(b, d.Stop())
	}
	report(b, measured, floor)
}

// BenchmarkReplaceOne replaces one endpoint of 100,000, from the client's call
// to its acknowledgement. The floor replays the same two messages over a plain
// connection of mdlayher/netlink in another namespace that holds the same.
func BenchmarkReplaceOne(b *testing.B) {
	_, k := open(b)
	_, s := startBench(b, k)
	ctx := context.Background()
	must(b, errorOf(s.Put(ctx, benchServices.Fragment())))
	snapshot := k.last(b)
	conn := openPlain(b, nfttest.New(b), len(snapshot))
	conn.replay(b, split(b, snapshot))
	replace := func(turn int) time.Duration {
		p := benchServices.ReplaceEndpoint(4712, 3, turn)
		began := time.Now()
		must(b, errorOf(s.Patch(ctx, p)))
		return time.Since(began)
	}
	// Once around, to have the bytes of each turn.
	var messages [2][]netlink.Message
	for _, turn := range []int{1, 0} {
		replace(turn)
		messages[turn] = split(b, k.last(b))
		conn.replay(b, messages[turn])
	}
	var measured, floor []time.Duration
	runtime.GC()
	turn := 0
	for b.Loop() {
		turn = 1 - turn
		measured = append(measured, replace(turn))
		floor = append(floor, conn.replay(b, messages[turn]))
	}
	report(b, measured, floor)
}

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
// patches 1,000 times a second and a third one pushes 100,000 elements. All of them run in this process, with the aggregator, on the same
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
	}{
		{"default", aggregator.DefaultRate, 200},
		{"unlimited", rate.Inf, 2000},
	} {
		b.Run(tt.name, func(b *testing.B) {
			var alone, beside []time.Duration
			var worst time.Duration
			for b.Loop() {
				f := startFair(b, tt.rate)
				alone = append(alone, f.sample(b, tt.samples)...)
				beside = append(beside, f.crowded(b, tt.samples)...)
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
		return f.daemon.Dial(b, publisher).Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment { return fairFragment(publisher, 0) }})
	}
	f.busy, f.large, f.small = join("busy"), join("large"), join("small")
	for publisher, s := range map[string]*client.Session{"busy": f.busy, "small": f.small} {
		must(b, errorOf(s.Put(context.Background(), fairFragment(publisher, 0))))
	}
	return f
}

func (f *fair) stop(b *testing.B) {
	for _, s := range []*client.Session{f.busy, f.large, f.small} {
		_ = s.Close()
	}
	must(b, f.daemon.Stop())
}

// fairFragment has n elements in a set of the publisher's own.
func fairFragment(publisher string, n int) *weftv1.Fragment {
	set := &weftv1.Set{Name: "addresses", Type: "ipv4_addr"}
	for i := range n {
		set.Elements = append(set.Elements, fairElement(i))
	}
	return &weftv1.Fragment{Name: "list", Tables: []*weftv1.Table{{Family: "ip", Name: publisher, Sets: []*weftv1.Set{set}}}}
}

func fairElement(i int) *weftv1.Element {
	return &weftv1.Element{Key: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}
}

// flip is a patch that adds an element, or removes it again.
func flip(publisher string, turn int) *weftv1.Patch {
	e := fairElement(turn / 2 % 1000)
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
		must(b, errorOf(f.small.Patch(context.Background(), p)))
		out = append(out, time.Since(began))
	}
	return out
}

// crowded samples beside the other two. The large one begins after a tenth, and
// sampling goes on until its updates are acknowledged.
func (f *fair) crowded(b *testing.B, n int) []time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { f.patch(ctx) })
	out := f.sample(b, n/10)
	pushed := make(chan error, 1)
	go func() { pushed <- errorOf(f.large.Put(context.Background(), fairFragment("large", fairElements))) }()
	for {
		out = append(out, f.sample(b, 1)...)
		if len(out) < n {
			continue
		}
		select {
		case err := <-pushed:
			must(b, err)
			cancel()
			wg.Wait()
			return out
		default:
		}
	}
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
