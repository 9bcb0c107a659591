package kernel

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// withoutFiles runs f while the process cannot open files.
func withoutFiles(t *testing.T, f func()) {
	t.Helper()
	// The garbage collector must not close a file meanwhile.
	runtime.GC()
	runtime.GC()
	// The lowest free descriptor becomes the limit.
	probe, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	lowest := probe.Fd()
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = uint64(lowest)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}()
	f()
}

// TestOutOfFiles commits while no file can be opened. Operations that need a file return
// EMFILE, and succeed later.
func TestOutOfFiles(t *testing.T) {
	modes(t, func(t *testing.T, cfg Config) {
		ns := nfttest.New(t)
		c := open(t, ns, cfg)
		id := testTable()
		var dump, watch, second error
		withoutFiles(t, func() {
			commit(t, c, AddTable{Table: id}, AddChain{Table: id, Chain: chain("a")})
			_, dump = c.Dump()
			_, watch = c.Watch(context.Background())
			_, second = Open(Config{NetNS: ns.FD()})
			commit(t, c, AddChain{Table: id, Chain: chain("b")})
		})
		for what, err := range map[string]error{"Dump": dump, "Watch": watch, "Open": second} {
			if !errors.Is(err, unix.EMFILE) {
				t.Errorf("%s without files = %v, want EMFILE", what, err)
			}
		}
		tables, err := c.Dump()
		if err != nil || len(tables) != 1 || len(tables[0].Chains) != 2 {
			t.Errorf("Dump = %+v, %v", tables, err)
		}
	})
}

// TestFullReceiveBuffer causes more errors than fit into the receive buffer. Either the
// first error is reported, or the outcome is unknown, but a rejected batch must not be
// reported as accepted.
func TestFullReceiveBuffer(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	id := testTable()
	commit(t, c, AddTable{Table: id})
	setOption(t, c, unix.SO_RCVBUF, 1)
	var ops []Op
	for range 500 {
		ops = append(ops, DeleteChain{Table: id, Name: "missing"})
	}
	_, err := c.Commit(append(ops, AddChain{Table: id, Chain: chain("a")}))
	var be *BatchError
	if !errors.As(err, &be) && !errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("Commit = %v, want a *BatchError or ErrUnknownOutcome", err)
	}
	if be != nil && (be.Index != 0 || be.Errno != unix.ENOENT) {
		t.Errorf("the rejected op is %v, want the first op", be)
	}
	c.sock.recvSize = 0
	commit(t, c, AddChain{Table: id, Chain: chain("b")})
	tables, err := c.Dump()
	if err != nil || len(tables[0].Chains) != 1 {
		t.Errorf("Dump = %+v, %v, want chain b alone", tables, err)
	}
}
