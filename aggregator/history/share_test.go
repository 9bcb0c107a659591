package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// TestQuietPublishersKeepTheirHistory has one publisher that changes much more than the history holds,
// after and between the changes of others: theirs stay, and can be undone.
func TestQuietPublishersKeepTheirHistory(t *testing.T) {
	const quiet, changes = 3, 100
	for _, test := range []struct {
		name string
		cfg  Config
		// fragments, updates and size are the noisy publisher's.
		fragments, updates, size int
	}{
		{"large updates", Config{MaxEntries: 10_000, MaxBytes: 2 << 20}, 1, 60, 100_000},
		{"much content", Config{MaxEntries: 10_000, MaxBytes: 2 << 20}, 40, 60, 100_000},
		{"many updates", Config{MaxEntries: 600, MaxBytes: 64 << 20}, 3, 900, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			r := start(t, dir, test.cfg)
			revision, rnd := uint64(0), rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
			change := func(publisher, name, text string, existed bool) Update {
				f := list(name, "10.0.0.1")
				f.Tables[0].Comment = text
				return Update{Fragment: desired.Key{Publisher: publisher, Name: name}, Existed: existed, Weight: len(text), Snapshot: func() *weftv1.Fragment { return f }}
			}
			record := func(all ...Update) {
				revision++
				r.Record(commit(revision, all...))
			}
			noise := func(n int) Update {
				return change("noisy", fmt.Sprint("f", n%test.fragments), fmt.Sprint(n, strings.Repeat("x", test.size)), n >= test.fragments)
			}
			flush := func() {
				must(t, r.Flush(t.Context()))
			}
			made := make(map[string][]uint64)
			for n := range changes {
				for q := range quiet {
					p := fmt.Sprint("quiet-", q)
					all := []Update{change(p, "list", fmt.Sprint("change ", n), n > 0)}
					if n == changes/2 {
						// The two share a commit.
						all = append(all, noise(q))
					}
					record(all...)
					made[p] = append(made[p], revision)
				}
			}
			flush()
			for n := range test.updates {
				record(noise(quiet + n))
				if rnd.IntN(4) == 0 || n == test.updates-1 {
					flush()
				}
			}
			r.stop()
			r = start(t, dir, test.cfg)
			for p, revisions := range made {
				list, lost, err := r.List(t.Context(), Query{Publisher: p, Reader: everything})
				if err != nil || len(list) != changes || lost != 0 {
					t.Errorf("%s has %d entries, forgotten up to %d, error %v, want %d and none", p, len(list), lost, err, changes)
				}
				for n := 0; n < changes-1; n += 14 {
					at := revisions[n+1]
					for _, reader := range []desired.Reader{everything, {Publisher: p}} {
						all, err := r.Compare(t.Context(), at-1, at, reader)
						if err != nil {
							t.Fatalf("revision %d: %v", at, err)
						}
						for _, d := range all {
							want := fmt.Sprint("change ", n)
							if d.Fragment.Publisher == p && (d.From.State != known || d.From.Fragment.GetTables()[0].GetComment() != want) {
								t.Fatalf("revision %d of %s: before it is %v, want %s", at, p, d.From, want)
							}
						}
					}
				}
			}
			// The noisy one has lost its own, and it is said.
			_, lost, err := r.List(t.Context(), Query{Publisher: "noisy", Reader: everything})
			if err != nil || lost == 0 {
				t.Errorf("noisy: forgotten up to %d, error %v", lost, err)
			}
			if _, err := r.Compare(t.Context(), lost-1, revision, desired.Reader{Publisher: "noisy"}); !errors.Is(err, ErrForgotten) {
				t.Errorf("noisy: error %v", err)
			}
			all, err := r.Compare(t.Context(), lost-1, revision, everything)
			must(t, err)
			for _, d := range all {
				if d.Fragment.Publisher == "noisy" && d.From.State != unknown {
					t.Errorf("%s: %v is claimed to be its content before what is forgotten", d.Fragment, d.From.State)
				}
			}
			if err := r.view(checkBounds(t, test.cfg)); err != nil {
				t.Error(err)
			}
		})
	}
}

// checkBounds checks that a history is within its bounds.
func checkBounds(t *testing.T, cfg Config) func(*tables) error {
	return func(all *tables) error {
		if all.log.Count() > cfg.MaxEntries || all.size() > cfg.MaxBytes {
			t.Errorf("%d entries, %d bytes of entries and content are over the bounds", all.log.Count(), all.size())
		}
		return nil
	}
}

// TestComparedBeforeLaterChanges has a publisher that has forgotten the first revision: the content at the second one
// is without the changes that followed.
func TestComparedBeforeLaterChanges(t *testing.T) {
	r := start(t, t.TempDir(), Config{MaxEntries: 3})
	r.Record(snapshot(1, false, list("a", "10.0.0.1")))
	for revision := uint64(2); revision <= 4; revision++ {
		r.Record(snapshot(revision, revision > 2, list("b", fmt.Sprint("10.0.0.", revision))))
	}
	r.Record(commit(5, Update{Fragment: desired.Key{Publisher: "other", Name: "c"}}))
	r.Record(snapshot(6, true, list("a", "10.0.0.6")))
	// What tester had at first is forgotten, and other has all.
	all, err := r.Compare(t.Context(), 0, 5, everything)
	if err != nil || len(all) < 2 || all[1].Fragment != key("a") {
		t.Fatalf("%v, error %v", all, err)
	}
	if all[1].From.State != unknown {
		t.Errorf("from %v", all[1].From)
	}
	wantContent(t, all[1].To, list("a", "10.0.0.1"))
}

// TestEmptySharesAreJoined has many publishers come and go: what the history has of them is bounded, and what it
// has forgotten is said.
func TestEmptySharesAreJoined(t *testing.T) {
	r := start(t, t.TempDir(), Config{MaxEntries: 10})
	revision := uint64(0)
	record := func(publisher string, withdrawn bool) {
		revision++
		f := list("list", "10.0.0.1")
		c := Update{Fragment: desired.Key{Publisher: publisher, Name: "list"}, Existed: withdrawn, Withdrawn: withdrawn}
		if !withdrawn {
			c.Snapshot = func() *weftv1.Fragment { return f }
		}
		r.Record(commit(revision, c))
	}
	record("first", false)
	for i := range 2 * maxShares {
		record(fmt.Sprint("p", i), false)
		record(fmt.Sprint("p", i), true)
		if i%64 == 0 {
			must(t, r.Flush(t.Context()))
		}
	}
	err := r.view(func(all *tables) error {
		if n := len(all.shares(everybody)); n > maxShares+64 {
			t.Errorf("%d shares, want at most %d", n, maxShares)
		}
		return nil
	})
	must(t, err)
	for _, reader := range []desired.Reader{{Publisher: "p0"}, everything} {
		if _, err := r.Compare(t.Context(), 1, revision, reader); !errors.Is(err, ErrForgotten) {
			t.Errorf("reader %+v, of a revision that was forgotten with a share: error %v", reader, err)
		}
	}
}
