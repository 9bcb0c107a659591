package kernel

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestInherit: a connection that takes the socket of an earlier one over owns its tables, which never
// are without an owner. One in another network namespace refuses it.
func TestInherit(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	first := open(t, ns, Config{})
	if !first.Owner() {
		t.Skip("this kernel has no owners of tables")
	}
	if _, err := first.Commit([]Op{AddTable{Table: testTable()}}); err != nil {
		t.Fatal(err)
	}
	kept, err := first.File()
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	flush := func() {
		t.Helper()
		if _, err := ns.Output("", "nft", "flush", "ruleset"); err != nil {
			t.Fatal(err)
		}
		if out, err := ns.Output("", "nft", "list", "ruleset"); err != nil || !strings.Contains(out, "table ip weft") {
			t.Fatalf("after a flush: %v\n%s", err, out)
		}
	}
	flush()
	give := func() (*os.File, error) {
		fd, err := unix.FcntlInt(kept.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		return os.NewFile(uintptr(fd), "kept"), err
	}
	if _, err := open(t, nfttest.New(t), Config{Inherit: give}).Adopt(); !errors.Is(err, errOtherNetwork) {
		t.Errorf("in another network namespace: %v", err)
	}
	if _, err := open(t, ns, Config{}).Adopt(); !errors.As(err, new(*OwnedError)) {
		t.Errorf("without the socket: %v, want an *OwnedError", err)
	}
	if _, err := open(t, ns, Config{Inherit: func() (*os.File, error) { return nil, ErrHeld }}).Adopt(); !errors.Is(err, ErrHeld) {
		t.Errorf("while another process uses the socket: %v", err)
	}
	next := open(t, ns, Config{Inherit: give})
	if tables, err := next.Adopt(); err != nil || len(tables) != 1 {
		t.Fatalf("adopt: %v, %v", tables, err)
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	flush()
	if _, err := next.Commit([]Op{DeleteTable{Table: testTable()}}); err != nil {
		t.Errorf("the next connection cannot change the table: %v", err)
	}
}
