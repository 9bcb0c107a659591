package kernel

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// serviceOps is the ruleset of services with ten endpoints each.
func serviceOps(t testing.TB, services int) (ops []Op, endpoints *set.Set, elements []set.Element) {
	t.Helper()
	id := testTable()
	endpoints, elements = loadEndpoints(t, 10*services)
	vmap := mapOf(t, nft.Map{Name: "services", TypeOf: "ip daddr . meta l4proto . th dport : verdict"})
	vips := make([]set.Element, services)
	for i := range vips {
		vips[i] = pack(t, vmap, fmt.Sprintf("10.%d.%d.%d . tcp . 80 : goto pick-10", 96+i>>16, i>>8&255, i&255))[0]
	}
	return []Op{
		AddTable{Table: id}, AddSet{Table: id, Set: vmap}, AddSet{Table: id, Set: endpoints},
		AddChain{Table: id, Chain: chain("pick-10")},
		AddElements{Table: id, Set: endpoints, Elements: elements},
		AddElements{Table: id, Set: vmap, Elements: vips},
	}, endpoints, elements
}

// bareSocket is the floor: a netlink socket that sends bytes and reads the
// acknowledgement, and does nothing else.
type bareSocket struct {
	fd  int
	buf []byte
}

func openBare(b *testing.B, ns *nfttest.NS) *bareSocket {
	b.Helper()
	s := &bareSocket{buf: make([]byte, 64<<10)}
	err := ns.Do(func() (err error) {
		if s.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER); err != nil {
			return err
		}
		return unix.Bind(s.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 16<<20); err != nil {
		b.Fatal(err)
	}
	return s
}

func (s *bareSocket) close() { _ = unix.Close(s.fd) }

// replay sends a batch and waits for its acknowledgement.
func (s *bareSocket) replay(b *testing.B, batch []byte) time.Duration {
	start := time.Now()
	if err := unix.Sendto(s.fd, batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		b.Fatal(err)
	}
	n, _, err := unix.Recvfrom(s.fd, s.buf, 0)
	took := time.Since(start)
	if err != nil {
		b.Fatal(err)
	}
	h, payload, _, ok := nextMessage(s.buf[:n])
	if ke, err := parseError(h.flags, payload); !ok || err != nil || ke.errno != 0 {
		b.Fatalf("the floor's batch failed: %v %v", ke, err)
	}
	return took
}

// report reports the medians and how they compare.
func report(b *testing.B, took, floor []time.Duration) {
	b.Helper()
	slices.Sort(took)
	slices.Sort(floor)
	t, f := took[len(took)/2], floor[len(floor)/2]
	b.ReportMetric(float64(t.Nanoseconds()), "ns/op")
	b.ReportMetric(float64(f.Nanoseconds()), "floor-ns")
	b.ReportMetric(float64(t)/float64(f), "ratio")
}

// BenchmarkCommit110k commits 10,000 services with ten endpoints each as one
// transaction, each time in a fresh namespace and on a fresh connection. The
// floor replays the same bytes over a bare socket. "ratio" compares medians.
func BenchmarkCommit110k(b *testing.B) {
	ops, _, _ := serviceOps(b, 10_000)
	batch, err := Encode(ops)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var took, floor []time.Duration
	for b.Loop() {
		b.StopTimer()
		ns := nfttest.New(b)
		c := open(b, ns, Config{})
		b.StartTimer()
		start := time.Now()
		_, err := c.Commit(ops)
		took = append(took, time.Since(start))
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		_ = c.Close()

		bare := openBare(b, nfttest.New(b))
		floor = append(floor, bare.replay(b, batch))
		bare.close()
		b.StartTimer()
	}
	report(b, took, floor)
}

// BenchmarkReplaceElement replaces one endpoint among 110,000 elements. The
// floor sends batches of the same two messages over a bare socket, to a table of the
// same size.
func BenchmarkReplaceElement(b *testing.B) {
	ops, s, elements := serviceOps(b, 10_000)
	c := open(b, nfttest.New(b), Config{})
	commit(b, c, ops...)
	bare := openBare(b, nfttest.New(b))
	defer bare.close()
	load, err := Encode(ops)
	if err != nil {
		b.Fatal(err)
	}
	bare.replay(b, load)

	// Two states of the same slot, to alternate between.
	id := testTable()
	states := [2]set.Element{elements[54_321], elements[54_321]}
	states[1].Data = elements[0].Data
	replace := func(i int) []Op {
		return []Op{
			DeleteElements{Table: id, Set: s, Elements: states[i&1 : i&1+1]},
			AddElements{Table: id, Set: s, Elements: states[1-i&1 : 2-i&1]},
		}
	}
	var batches [2][]byte
	for i := range batches {
		if batches[i], err = Encode(replace(i)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	var took, floor []time.Duration
	for i := 0; b.Loop(); i++ {
		ops := replace(i)
		start := time.Now()
		_, err := c.Commit(ops)
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		floor = append(floor, bare.replay(b, batches[i&1]))
		b.StartTimer()
	}
	report(b, took, floor)
}

// BenchmarkDump110k reads the same ruleset back.
func BenchmarkDump110k(b *testing.B) {
	ops, _, _ := serviceOps(b, 10_000)
	c := open(b, nfttest.New(b), Config{})
	commit(b, c, ops...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Dump(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncode110k encodes it without sending.
func BenchmarkEncode110k(b *testing.B) {
	ops, _, _ := serviceOps(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(ops); err != nil {
			b.Fatal(err)
		}
	}
}
