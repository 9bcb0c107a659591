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
	probe := nfttest.Must(os.Open("/dev/null"))
	lowest := probe.Fd()
	nfttest.NoError(t, probe.Close())
	var limit unix.Rlimit
	nfttest.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	low := limit
	low.Cur = uint64(lowest)
	nfttest.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
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
		ns, c := connect(t, cfg)
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

// TestUserDataIsProbed probes for userdata of tables with its attribute, and with attribute 200,
// which no kernel knows.
func TestUserDataIsProbed(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	for _, tt := range []struct {
		typ  uint16
		want error
	}{{nftaTableUserData, unix.ERANGE}, {200, nil}} {
		e := encoder{buffer: buffer{seq: c.seq}}
		e.beginBatch()
		e.probeUserData(tt.typ, testTable())
		e.closeLast()
		answers := 0
		err := c.exchange(&e, func(_ header, ke kernelError) error {
			answers++
			if !errors.Is(ke.errno, tt.want) && (tt.want != nil || ke.errno != 0) {
				t.Errorf("attribute %d: the kernel answers %v, want %v", tt.typ, ke.errno, tt.want)
			}
			return nil
		})
		if err != nil || answers != 1 {
			t.Errorf("attribute %d: %d answers, error %v", tt.typ, answers, err)
		}
	}
}

// TestFeatures tests that Open finds the features of the running version of Linux. A distribution
// may have them in an older version.
func TestFeatures(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	for _, f := range []struct {
		name         string
		found        bool
		major, minor int
	}{{"owner", c.owner, 6, 9}, {"destroy", c.destroy, 6, 3}, {"ackEnd", c.ackEnd, 6, 10}} {
		t.Logf("feature %s: %t", f.name, f.found)
		if !f.found && nfttest.KernelIs(t, f.major, f.minor) {
			t.Errorf("Open did not find the feature %s, which Linux %d.%d has", f.name, f.major, f.minor)
		}
	}
}
