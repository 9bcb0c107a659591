package history

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
)

// running is a recorder whose store can be closed.
type running struct {
	*Recorder
	stop func()
	lost int
	// broken fails all transactions.
	broken atomic.Bool
	// transactions counts transactions that write.
	transactions atomic.Int64
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start runs a recorder on a directory until the end of the test, or until stop.
func start(t *testing.T, dir string, cfg Config) *running {
	t.Helper()
	r := &running{}
	if cfg.MaxEntries == 0 {
		cfg.MaxEntries = 1000
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 8 << 20
	}
	cfg.Lost = func(n int) { r.lost += n }
	cfg.Store = store.New(store.Config{Path: dir, Retry: time.Millisecond, Logger: slog.New(slog.DiscardHandler), Failed: func(string) {}, Fault: func() error {
		r.transactions.Add(1)
		if r.broken.Load() {
			return errors.New("broken")
		}
		return nil
	}})
	r.Recorder = New(cfg)
	must(t, cfg.Store.Load())
	r.stop = func() {
		if err := cfg.Store.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

var everything = desired.Reader{All: true}

func key(name string) desired.Key { return desired.Key{Publisher: "tester", Name: name} }

// list is a fragment with a set of elements.
func list(name string, members ...string) *weftv1.Fragment {
	set := &weftv1.Set{Name: "blocked", Type: "ipv4_addr"}
	for _, m := range slices.Sorted(slices.Values(members)) {
		set.Elements = append(set.Elements, &weftv1.Element{Key: m})
	}
	return &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{Family: "inet", Name: "demo", Sets: []*weftv1.Set{set}}}}
}

func snapshot(revision uint64, existed bool, f *weftv1.Fragment) *Commit {
	return commit(revision, Update{Fragment: key(f.GetName()), Existed: existed, Snapshot: func() *weftv1.Fragment { return f }, Weight: 1})
}

func patch(revision uint64, name string, add, remove []string) *Commit {
	p := &weftv1.ElementPatch{Set: "blocked", Remove: remove}
	for _, m := range add {
		p.Add = append(p.Add, &weftv1.Element{Key: m})
	}
	return commit(revision, Update{Fragment: key(name), Existed: true, Weight: 1, Patch: func() *weftv1.Patch {
		return &weftv1.Patch{Fragment: name, Tables: []*weftv1.TablePatch{{Family: "inet", Name: "demo", Elements: []*weftv1.ElementPatch{p}}}}
	}})
}

func withdrawal(revision uint64, name string) *Commit {
	return commit(revision, Update{Fragment: key(name), Existed: true, Withdrawn: true})
}

func commit(revision uint64, changes ...Update) *Commit {
	c := &Commit{Revision: &weftv1.Revision{Revision: revision}, Updates: changes}
	for _, ch := range changes {
		c.Revision.Fragments = append(c.Revision.Fragments, &weftv1.FragmentChange{Fragment: &weftv1.FragmentName{Publisher: ch.Fragment.Publisher, Name: ch.Fragment.Name}})
	}
	return c
}

// compare returns the difference of the only fragment that changed.
func compare(t *testing.T, r *running, from, to uint64) Difference {
	t.Helper()
	all, err := r.Compare(t.Context(), from, to, everything)
	if err != nil || len(all) != 1 {
		t.Fatalf("from %d to %d: %v, error %v", from, to, all, err)
	}
	return all[0]
}

func wantContent(t *testing.T, got Content, want *weftv1.Fragment) {
	t.Helper()
	if got.State != known || !proto.Equal(got.Fragment, want) {
		t.Fatalf("got %v %v, want %v", got.State, got.Fragment, want)
	}
}

// TestCompareFindsEveryRevision records random updates, and compares every pair of revisions
// with what was recorded, also after a restart.
func TestCompareFindsEveryRevision(t *testing.T) {
	dir, rnd := t.TempDir(), rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	r := start(t, dir, Config{})
	states := []map[string][]string{{}}
	for revision := uint64(1); revision <= 60; revision++ {
		now := map[string][]string{}
		for name, members := range states[len(states)-1] {
			now[name] = slices.Clone(members)
		}
		name := fmt.Sprint("f", rnd.IntN(3))
		members, exists := now[name]
		m := fmt.Sprint("10.0.0.", rnd.IntN(9))
		switch what := rnd.IntN(4); {
		case what == 0 && exists:
			delete(now, name)
			r.Record(withdrawal(revision, name))
		case what == 1 && exists && slices.Contains(members, m):
			now[name] = slices.DeleteFunc(members, func(o string) bool { return o == m })
			r.Record(patch(revision, name, nil, []string{m}))
		case what == 2 && exists && !slices.Contains(members, m):
			now[name] = append(members, m)
			r.Record(patch(revision, name, []string{m}, nil))
		default:
			now[name] = []string{m, fmt.Sprint("10.0.1.", rnd.IntN(9))}
			r.Record(snapshot(revision, exists, list(name, now[name]...)))
		}
		states = append(states, now)
		if revision == 30 {
			r.stop()
			r = start(t, dir, Config{})
		}
	}
	for from := range states {
		for to := from; to < len(states); to++ {
			all, err := r.Compare(t.Context(), uint64(from), uint64(to), everything) //nolint:gosec // small
			must(t, err)
			got := map[string]Difference{}
			for _, d := range all {
				got[d.Fragment.Name] = d
			}
			for _, name := range []string{"f0", "f1", "f2"} {
				wantSide(t, got[name].From, got[name].To, states[from], states[to], name)
			}
		}
	}
}

func wantSide(t *testing.T, from, to Content, before, after map[string][]string, name string) {
	t.Helper()
	state := func(members []string, ok bool) Content {
		if !ok {
			return Content{State: absent}
		}
		return Content{State: known, Fragment: list(name, members...)}
	}
	wasMembers, was := before[name]
	isMembers, is := after[name]
	wantFrom, wantTo := state(wasMembers, was), state(isMembers, is)
	if same(wantFrom, wantTo) {
		if from.State != 0 {
			t.Fatalf("%s did not change, and there is a difference: %v and %v", name, from, to)
		}
		return
	}
	if !same(from, wantFrom) || !same(to, wantTo) {
		t.Fatalf("%s: got %v and %v, want %v and %v", name, from, to, wantFrom, wantTo)
	}
}

// TestListIsFiltered lists entries for those who may read all, and for others.
func TestListIsFiltered(t *testing.T) {
	r := start(t, t.TempDir(), Config{})
	r.Record(snapshot(1, false, list("a", "10.0.0.1")))
	r.Record(commit(2, Update{Fragment: desired.Key{Publisher: "other", Name: "b"}}, Update{Fragment: key("a"), Existed: true}))
	r.Record(commit(3))
	for _, test := range []struct {
		name string
		q    Query
		want []uint64
	}{
		{"all", Query{Reader: everything}, []uint64{3, 2, 1}},
		{"limit", Query{Reader: everything, Limit: 1}, []uint64{3}},
		{"before", Query{Reader: everything, Before: 2}, []uint64{1}},
		{"publisher", Query{Reader: everything, Publisher: "other"}, []uint64{2}},
		{"reader", Query{Reader: desired.Reader{Publisher: "tester"}}, []uint64{2, 1}},
		{"stranger", Query{Reader: desired.Reader{Publisher: "absent"}}, nil},
	} {
		all, _, err := r.List(t.Context(), test.q)
		must(t, err)
		var got []uint64
		for _, e := range all {
			got = append(got, e.GetRevision())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: revisions %v, want %v", test.name, got, test.want)
		}
	}
}

// TestUpdateWithoutDifferenceIsNotRecorded repeats a snapshot.
func TestUpdateWithoutDifferenceIsNotRecorded(t *testing.T) {
	r := start(t, t.TempDir(), Config{})
	for revision := range uint64(3) {
		c := snapshot(revision, revision > 0, list("a", "10.0.0.1"))
		c.Empty = true
		r.Record(c)
	}
	if all, _, err := r.List(t.Context(), Query{Reader: everything}); err != nil || len(all) != 1 {
		t.Fatalf("entries %v, error %v", all, err)
	}
}

// TestLostFragments starts without a fragment that was there.
func TestLostFragments(t *testing.T) {
	r := start(t, t.TempDir(), Config{})
	r.Record(snapshot(1, false, list("stays", "10.0.0.1")))
	r.Record(snapshot(2, false, list("goes", "10.0.0.2")))
	r.Record(&Commit{Revision: &weftv1.Revision{Revision: 3}, Present: map[desired.Key]bool{key("stays"): true}, Empty: true})
	d := compare(t, r, 2, 3)
	wantContent(t, d.From, list("goes", "10.0.0.2"))
	if d.To.State != absent {
		t.Errorf("after the loss: %v", d.To)
	}
	all, _, err := r.List(t.Context(), Query{Reader: everything, Limit: 1})
	if err != nil || len(all[0].GetFragments()) != 1 || all[0].GetFragments()[0].GetKind() != weftv1.FragmentChange_KIND_LOST {
		t.Errorf("entry %v, error %v", all, err)
	}
}

// TestBounds records more than is kept: the file stops growing, and what is forgotten is said.
func TestBounds(t *testing.T) {
	const maxBytes = 1 << 20
	for _, test := range []struct {
		name    string
		cfg     Config
		payload string
	}{
		{"entries", Config{MaxEntries: 10, MaxBytes: 64 << 20}, "x"},
		{"bytes", Config{MaxEntries: 1 << 20, MaxBytes: maxBytes}, string(make([]byte, 20_000))},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			r := start(t, dir, test.cfg)
			const n = 400
			for revision := uint64(1); revision <= n; revision++ {
				f := list("a", fmt.Sprint("10.0.", revision/256, ".", revision%256))
				f.Tables[0].Comment = fmt.Sprint(revision, test.payload)
				r.Record(snapshot(revision, revision > 1, f))
				must(t, r.Flush(t.Context()))
			}
			all, forgotten, err := r.List(t.Context(), Query{Reader: everything})
			if err != nil || len(all) == 0 || uint64(len(all)) != n-forgotten || len(all) > test.cfg.MaxEntries {
				t.Fatalf("%d entries, %d forgotten, error %v", len(all), forgotten, err)
			}
			info, err := os.Stat(filepath.Join(dir, "state.db"))
			if err != nil || info.Size() > 3*maxBytes {
				t.Fatalf("the file has %d bytes, error %v", info.Size(), err)
			}
			compare(t, r, forgotten, n)
			if _, err := r.Compare(t.Context(), forgotten-1, n, everything); !errors.Is(err, ErrForgotten) {
				t.Fatalf("error %v", err)
			}
		})
	}
}

// TestContentTooLarge records a fragment that grows beyond what is kept, and shrinks again.
func TestContentTooLarge(t *testing.T) {
	r := start(t, t.TempDir(), Config{MaxBytes: 1 << 16})
	small, large := list("a", "10.0.0.1"), list("a", "10.0.0.1")
	large.Tables[0].Comment = string(make([]byte, 1<<15))
	r.Record(snapshot(1, false, small))
	r.Record(snapshot(2, true, large))
	r.Record(patch(3, "a", []string{"10.0.0.9"}, nil))
	r.Record(snapshot(4, true, list("a", "10.0.0.2")))
	wantContent(t, compare(t, r, 1, 2).From, small)
	if d := compare(t, r, 2, 3); d.From.State != unknown || d.To.State != unknown {
		t.Errorf("content %v and %v", d.From, d.To)
	}
	wantContent(t, compare(t, r, 3, 4).To, list("a", "10.0.0.2"))
	wantContent(t, compare(t, r, 1, 4).From, small)
}

// TestReadersDoNotStopTheWriter holds a transaction that reads.
func TestReadersDoNotStopTheWriter(t *testing.T) {
	r := start(t, t.TempDir(), Config{})
	r.Record(snapshot(1, false, list("a", "10.0.0.1")))
	must(t, r.Flush(t.Context()))
	err := r.view(func(*tables) error {
		r.Record(snapshot(2, true, list("a", "10.0.0.2")))
		return r.Flush(t.Context())
	})
	must(t, err)
}

// TestPatientCommitsShareATransaction records a commit a second, each of which may be written late: nothing is
// rendered and no transaction is made before patience is over, unless somebody reads or the group is large.
func TestPatientCommitsShareATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := start(t, dir, Config{})
		// transactions returns how many were made so far.
		transactions := func() int {
			synctest.Wait()
			return int(r.transactions.Load())
		}
		var rendered atomic.Int64
		revision := uint64(1)
		record := func() {
			revision++
			c := patch(revision, "a", []string{fmt.Sprintf("10.0.%d.%d", revision/250, revision%250)}, nil)
			render := c.Updates[0].Patch
			c.Updates[0].Patch = func() *weftv1.Patch { rendered.Add(1); return render() }
			c.Patient = true
			r.Record(c)
		}
		pass := func(d time.Duration) { <-time.After(d) }

		empty := transactions()
		r.Record(snapshot(revision, false, list("a", "10.0.0.1")))
		pass(interval)
		first := transactions()
		if first != empty+1 {
			t.Fatalf("%d transactions for a commit that is not patient, want 1", first-empty)
		}
		pass(time.Hour)
		for range patience/time.Second - 2 {
			record()
			pass(time.Second)
		}
		if n := transactions() - first; n != 0 || rendered.Load() != 0 {
			t.Errorf("%d transactions and %d patches rendered before the group is due, want none", n, rendered.Load())
		}
		pass(2 * time.Second)
		if n := transactions() - first; n != 1 || rendered.Load() != int64(revision)-1 {
			t.Errorf("%d transactions and %d patches rendered after %d commits, want one with all", n, rendered.Load(), revision-1)
		}

		// A reader has them at once.
		record()
		if all, _, err := r.List(t.Context(), Query{Reader: everything}); err != nil || all[0].GetRevision() != revision {
			t.Errorf("the newest is %v, error %v, want %d", all[0], err, revision)
		}
		// So has the disk if they are many.
		before := transactions()
		for range groupSize {
			record()
		}
		if n := transactions() - before; n != 1 {
			t.Errorf("%d transactions for a large group, want 1", n)
		}
		// A stop loses none.
		record()
		r.stop()
		r = start(t, dir, Config{})
		if all, _, err := r.List(t.Context(), Query{Reader: everything}); err != nil || all[0].GetRevision() != revision {
			t.Errorf("after a restart the newest is %v, error %v, want %d", all[0], err, revision)
		}
		r.stop()
	})
}

// TestUnwritable begins where nothing can be written, and goes on when it can: what waited is
// recorded, and no more than is bounded.
func TestUnwritable(t *testing.T) {
	r := start(t, t.TempDir(), Config{MaxEntries: 2 * maxWaiting})
	r.broken.Store(true)
	for revision := uint64(1); revision <= maxWaiting+100; revision++ {
		r.Record(snapshot(revision, revision > 1, list("a", fmt.Sprint("10.0.", revision/256, ".", revision%256))))
	}
	// Attempts that fail add nothing to what waits.
	const attempts = 5
	for i := range attempts {
		if err := r.Flush(t.Context()); !errors.Is(err, ErrUnavailable) || r.Failing() == nil {
			t.Fatalf("error %v, failing %v", err, r.Failing())
		}
		r.Record(snapshot(uint64(maxWaiting+101+i), true, list("a", "10.0.0.1")))
	}
	r.broken.Store(false)
	for r.Flush(t.Context()) != nil {
	}
	all, _, err := r.List(t.Context(), Query{Reader: everything})
	must(t, err)
	total := 0
	for _, e := range all {
		total += max(1, int(e.GetLost())) //nolint:gosec // small
	}
	if len(all) > maxWaiting+1 || total != maxWaiting+100+attempts || r.lost != 100+attempts {
		t.Fatalf("%d entries for %d commits, %d lost", len(all), total, r.lost)
	}
	if d := compare(t, r, maxWaiting-1, maxWaiting+100+attempts); d.To.State != unknown {
		t.Fatalf("content after the loss: %v", d.To)
	}
}
