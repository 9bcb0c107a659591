package aggregator_test

import (
	"context"
	"encoding/binary"
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

// report reports the median of what was measured, and of its floors under their
// names, with the ratios to them.
func report(b *testing.B, measured []time.Duration, floors map[string][]time.Duration) {
	m := median(measured)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(m.Nanoseconds())/1e6, "ms")
	for name, durations := range floors {
		f := median(durations)
		b.ReportMetric(float64(f.Nanoseconds())/1e6, name+"-ms")
		b.ReportMetric(float64(m)/float64(f), name+"-ratio")
	}
}

// startBench runs a daemon without a limit on commits: what is measured is a
// commit, as it is when the limiter has tokens.
func startBench(b *testing.B, k aggregator.Kernel) (*aggregatortest.Daemon, *client.Session, func(*weftv1.Fragment)) {
	b.Helper()
	d := aggregatortest.Start(b, aggregatortest.Config{Config: aggregator.Config{Kernel: k, StateDir: b.TempDir(), Rate: rate.Inf}})
	c, err := client.Dial(context.Background(), client.Config{Socket: d.Socket, Publisher: "services"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	var current *weftv1.Fragment
	s := c.Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment { return current }})
	b.Cleanup(func() { _ = s.Close() })
	return d, s, func(f *weftv1.Fragment) { current = f }
}

// BenchmarkSnapshot110k commits 10,000 services with 10 endpoints each through
// client, socket, merge and kernel, and replays the same bytes over a bare
// netlink socket in another namespace. The ratio of the wall clock is that of an idle
// machine only; cpu is what the process used for either, the kernel's part included.
func BenchmarkSnapshot110k(b *testing.B) {
	f := benchServices.Fragment()
	var measured, floor, cpu, floorCPU []time.Duration
	for b.Loop() {
		_, k := open(b)
		d, s, _ := startBench(b, k)
		floorNS := nfttest.New(b)
		runtime.GC()
		began, used := time.Now(), cpuTime(b)
		if _, err := s.Put(context.Background(), f); err != nil {
			b.Fatal(err)
		}
		measured, cpu = append(measured, time.Since(began)), append(cpu, cpuTime(b)-used)
		batch := k.last(b)
		bare := openBare(b, floorNS, len(batch))
		used = cpuTime(b)
		floor = append(floor, bare.replay(b, batch))
		floorCPU = append(floorCPU, cpuTime(b)-used)
		if err := d.Stop(); err != nil {
			b.Fatal(err)
		}
	}
	report(b, measured, map[string][]time.Duration{"floor": floor})
	b.ReportMetric(float64(median(cpu).Nanoseconds())/1e6, "cpu-ms")
	b.ReportMetric(float64(median(floorCPU).Nanoseconds())/1e6, "floor-cpu-ms")
}

// BenchmarkReplaceOne replaces one endpoint of 100,000, from the client's call
// to its acknowledgement. The floor replays the same two messages over a plain
// connection of mdlayher/netlink in another namespace that holds the same;
// syscall is the same over two bare system calls.
func BenchmarkReplaceOne(b *testing.B) {
	_, k := open(b)
	_, s, _ := startBench(b, k)
	ctx := context.Background()
	if _, err := s.Put(ctx, benchServices.Fragment()); err != nil {
		b.Fatal(err)
	}
	snapshot := k.last(b)
	syscalls := openBare(b, nfttest.New(b), len(snapshot))
	syscalls.replay(b, snapshot)
	conn := openPlain(b, nfttest.New(b), len(snapshot))
	conn.replay(b, split(b, snapshot))
	replace := func(turn int) time.Duration {
		p := benchServices.ReplaceEndpoint(4712, 3, turn)
		began := time.Now()
		if _, err := s.Patch(ctx, p); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	// Once around, to have the bytes of each turn.
	var batches [2][]byte
	var messages [2][]netlink.Message
	for _, turn := range []int{1, 0} {
		replace(turn)
		batches[turn] = k.last(b)
		messages[turn] = split(b, batches[turn])
		syscalls.replay(b, batches[turn])
		conn.replay(b, messages[turn])
	}
	var measured, floor, bottom []time.Duration
	runtime.GC()
	turn := 0
	for b.Loop() {
		turn = 1 - turn
		measured = append(measured, replace(turn))
		floor = append(floor, conn.replay(b, messages[turn]))
		bottom = append(bottom, syscalls.replay(b, batches[turn]))
	}
	report(b, measured, map[string][]time.Duration{"floor": floor, "syscall": bottom})
}
