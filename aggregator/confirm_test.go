package aggregator_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// several returns so many elements.
func several(network, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("10.%d.%d.%d", network, i/250, i%250+1))
	}
	return out
}

// TestUnconfirmedIsAccounted has a publisher that is limited in everything keep earlier content: it counts as what the
// publisher holds until it is confirmed, and is on the disk no longer. An update can be taken back although its
// publisher has used what it left of other limits.
func TestUnconfirmedIsAccounted(t *testing.T) {
	path, dir := filepath.Join(t.TempDir(), "weft.yaml"), t.TempDir()
	accessFile(t, path, "publishers: [{name: cni, match: {uid: 1}, allow: {tables: [{name: demo}]}, limits: {elements: 400, bytes: 10Ki}}]\n")
	control, err := access.Open(access.Options{File: path})
	must(t, err)
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k, Access: control, StateDir: dir}})
	ctx, c := aggregatortest.Context(t), d.Dial(t, "cni")
	bytes := func() uint64 {
		t.Helper()
		list, err := c.ListPublishers(ctx)
		must(t, err)
		for _, l := range list.GetPublishers()[0].GetLimits() {
			if l.GetName() == "bytes" {
				return l.GetUsed()
			}
		}
		t.Fatal("no limit of bytes")
		return 0
	}
	kept := func() (n uint64) {
		t.Helper()
		copied := t.TempDir()
		must(t, os.CopyFS(copied, os.DirFS(dir)))
		s := store.New(store.Config{Path: copied, Retry: time.Second, Logger: slog.New(slog.DiscardHandler), Failed: func(string) {}})
		s.Register(store.Part{Bucket: "unconfirmed", Single: true})
		must(t, s.Load())
		must(t, s.View(func(tx *store.Tx) error {
			b, err := tx.Bucket("unconfirmed")
			if err == nil {
				n = uint64(b.Size()) //nolint:gosec // a size
			}
			return err
		}))
		must(t, s.Close())
		return n
	}
	wantLimit := func(err error) {
		t.Helper()
		var rejected *client.RejectedError
		if !errors.As(err, &rejected) || !rejected.Has(weftv1.Violation_REASON_LIMIT) {
			t.Fatalf("over a limit: %v", err)
		}
	}
	mustApply(t, c, blocklist("a", several(0, 300)...))
	alone := bytes()
	if _, _, err := c.ApplyUnconfirmed(ctx, blocklist("a", several(1, 10)...), time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := bytes() - alone*10/300; got < kept()-100 || kept() < 300 {
		t.Errorf("the earlier content counts as %d bytes, and is %d on the disk", got, kept())
	}
	// Its elements are free for others. What it needs on the disk is not.
	mustApply(t, c, blocklist("b", several(2, 380)...))

	_, _, err = c.ApplyUnconfirmed(ctx, blocklist("b", several(2, 381)...), time.Hour)
	wantLimit(err)
	if kept() > 6<<10 {
		t.Errorf("what was refused is on the disk")
	}
	// The update is taken back, although now there are more elements than allowed.
	if _, err := c.Confirm(ctx, "", "a", true); err != nil {
		t.Fatal(err)
	}
	got, err := c.Get(ctx, "", "a")
	if err != nil || got.GetStatus().GetElements() != 300 || got.GetStatus().GetRevertTime().IsValid() {
		t.Fatalf("after taking it back: %v, %v", got.GetStatus(), err)
	}
	if kept() != 0 {
		t.Errorf("%d bytes are left on the disk", kept())
	}
	wantLimit(func() error { _, err := c.Apply(ctx, blocklist("a", several(3, 301)...)); return err }())
}
