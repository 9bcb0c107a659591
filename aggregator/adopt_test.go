package aggregator_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/aggregatortest"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// TestRecordOfNothing has a record that says less than the kernel: nothing is
// swept while the fragments that the rules name are away.
func TestRecordOfNothing(t *testing.T) {
	k := &aggregatortest.Kernel{}
	dir := t.TempDir()
	ctx := aggregatortest.Context(t)
	cfg := aggregator.Config{Kernel: k, StateDir: dir}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	if _, err := d.Dial(t, "tester").Apply(ctx, blocklist("list", "10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "record.json"), []byte(`{"version":1,"books":[{}],"desired":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d = aggregatortest.Start(t, aggregatortest.Config{Config: cfg})
	c := d.Dial(t, "other")
	if _, err := c.Apply(ctx, blocklist("other", "10.0.0.9")); err != nil {
		t.Fatal(err)
	}
	list, err := c.List(ctx)
	if err != nil || len(list.GetFragments()) != 2 || list.GetFragments()[1].GetState() != weftv1.State_STATE_ADOPTED {
		t.Fatalf("list %v, error %v: want the fragment that the rules name as adopted", list, err)
	}
	commits := len(k.Commits())
	if _, err := d.Dial(t, "tester").Apply(ctx, blocklist("list", "10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	if n := len(k.Commits()); n != commits {
		t.Fatalf("%d commits after %d: the returning fragment is as it was", n, commits)
	}
}
