package statedir

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/entries"
	"github.com/weft-proxy/weft/aggregator/store"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// watched is a Dir whose log and failures a test reads.
type watched struct {
	*Dir
	// mu guards log and failed.
	mu     sync.Mutex
	log    bytes.Buffer
	failed map[string]int
	// broken fails all transactions.
	broken atomic.Bool
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

func watch(path string) *watched {
	w := &watched{failed: make(map[string]int)}
	log := slog.New(slog.NewTextHandler(w, nil))
	w.Dir = New(store.New(store.Config{
		Path: path, Retry: time.Hour, Logger: log,
		Failed: func(kind string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failed[kind]++
		},
		Fault: func() error {
			if w.broken.Load() {
				return errors.New("broken")
			}
			return nil
		},
	}), log)
	return w
}

// load loads a directory that is whole.
func load(t testing.TB, path string) (*watched, *Contents) {
	t.Helper()
	w := watch(path)
	c, err := w.Load()
	must(t, err)
	if len(w.failed) > 0 {
		t.Fatalf("failures %v: %s", w.failed, w.log.String())
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, c
}

// wantFragments compares the fragments of contents; elements and objects have no
// order.
func wantFragments(t testing.TB, c *Contents, want ...*weftv1.Fragment) {
	t.Helper()
	if len(c.Fragments) != len(want) {
		t.Fatalf("%d fragments, want %d", len(c.Fragments), len(want))
	}
	for i, f := range c.Fragments {
		if got, want := sorted(f.Content), sorted(want[i]); !proto.Equal(got, want) {
			t.Fatalf("fragment %v\nwant     %v", got, want)
		}
	}
}

// sorted returns a fragment with everything in a fixed order.
func sorted(f *weftv1.Fragment) *weftv1.Fragment {
	f = proto.CloneOf(f)
	for _, t := range f.GetTables() {
		slices.SortFunc(t.GetChains(), func(a, b *weftv1.Chain) int { return cmp.Compare(a.GetName(), b.GetName()) })
		slices.SortFunc(t.GetObjects(), func(a, b *weftv1.Object) int {
			return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetName(), b.GetName()))
		})
		for _, sets := range [][]*weftv1.Set{t.GetSets(), t.GetMaps()} {
			slices.SortFunc(sets, func(a, b *weftv1.Set) int { return cmp.Compare(a.GetName(), b.GetName()) })
			for _, s := range sets {
				slices.SortFunc(s.GetElements(), func(a, b *weftv1.Element) int { return cmp.Compare(a.GetKey(), b.GetKey()) })
			}
		}
	}
	slices.SortFunc(f.GetTables(), func(a, b *weftv1.Table) int {
		return cmp.Compare(entries.Key(a.GetFamily(), a.GetName()), entries.Key(b.GetFamily(), b.GetName()))
	})
	return f
}

func key(name string) desired.Key { return desired.Key{Publisher: "p", Name: name} }

// fragment is one with everything that a fragment can have, and n elements.
func fragment(name string, n int) *weftv1.Fragment {
	f := &weftv1.Fragment{Name: name, Priority: -3, Lifetime: weftv1.Lifetime_LIFETIME_DURABLE, Tables: []*weftv1.Table{
		{
			Family: "ip", Name: "demo", Comment: "why", Flags: []string{"dormant"},
			Chains: []*weftv1.Chain{
				{Name: "input", Type: "filter", Hook: "input", Priority: "filter", Rules: []*weftv1.Rule{{Text: "accept", Comment: "all"}, {Text: "drop"}}},
				{Name: "in"},
			},
			Sets:       []*weftv1.Set{{Name: "a", Type: "ipv4_addr"}, {Name: "a-b", Type: "ipv4_addr", Elements: []*weftv1.Element{{Key: "10.0.0.1"}}}},
			Maps:       []*weftv1.Set{{Name: "m", Role: weftv1.MapRole_MAP_ROLE_AFFINITY, Type: "ipv4_addr : verdict", Elements: []*weftv1.Element{{Key: "10.0.0.1 . tcp", Value: "drop", Comment: "c", Timeout: durationpb.New(7e6)}}}},
			Objects:    []*weftv1.Object{{Kind: "counter", Name: "c"}, {Kind: "ct helper", Name: "c", Text: "x"}},
			Flowtables: []*weftv1.Flowtable{{Name: "f", Devices: []string{"eth0"}}},
		},
		{Family: "ip", Name: "demo-b"},
		{Family: "inet", Name: "demo", Chains: []*weftv1.Chain{{Name: "c"}}},
	}}
	for i := range n {
		f.Tables[0].Sets[0].Elements = append(f.Tables[0].Sets[0].Elements, &weftv1.Element{Key: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)})
	}
	return f
}

// snapshot is the change that stores a fragment.
func snapshot(f *weftv1.Fragment) Update {
	return Update{Fragment: key(f.GetName()), Snapshot: func() *weftv1.Fragment { return proto.CloneOf(f) }}
}

// storeNow stores changes, and returns what was answered.
func storeNow(w *watched, changes ...Update) error {
	done := make(chan error, len(changes))
	for _, c := range changes {
		c.Done = func(err error) { done <- err }
		w.Store(c)
	}
	var errs []error
	for range changes {
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}

// files returns the names in a directory, and below it.
func files(t testing.TB, dir string) string {
	t.Helper()
	var names []string
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && path != dir {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return strings.Join(names, " ")
}
