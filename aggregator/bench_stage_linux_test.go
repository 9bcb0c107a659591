package aggregator_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// stages are what happens to an update on its way from the socket to the kernel. Each
// prepares what it begins with, and returns what is measured, which can be repeated.
var stages = []struct {
	name string
	run  func(b *testing.B, s *staged) func() error
}{
	{"decode", func(_ *testing.B, s *staged) func() error {
		return func() error { return proto.Unmarshal(s.message, &weftv1.Fragment{}) }
	}},
	{"pack", func(_ *testing.B, s *staged) func() error {
		return func() error {
			_, _, err := admit(stageKey, s.fragment)
			return err
		}
	}},
	{"merge", func(_ *testing.B, s *staged) func() error {
		return func() error { return merge.New().Apply(s.update) }
	}},
	{"diff", func(b *testing.B, s *staged) func() error {
		state := merge.New()
		s.apply(b, state, s.update)
		return func() error { return planned(state) }
	}},
	{"encode", func(_ *testing.B, s *staged) func() error {
		return func() error {
			_, err := kernel.Encode(s.ops)
			return err
		}
	}},
	{"record", func(b *testing.B, s *staged) func() error {
		// It is written where declarations change, and not for a change of elements.
		state, dir := s.committed(b), statedir.New(store.New(store.Config{Path: b.TempDir(), Retry: time.Second, Logger: slog.New(slog.DiscardHandler), Failed: func(string) {}}), slog.New(slog.DiscardHandler))
		must(b, errorOf(dir.Load()))
		b.Cleanup(func() { _ = dir.Close() })
		partial := false
		return func() error {
			partial = !partial
			return dir.SaveRecord(statedir.Record{Partial: partial, Desired: views.Record(state)}, 1)
		}
	}},
	{"pack-one", func(_ *testing.B, s *staged) func() error {
		return func() error {
			_, err := s.admit(s.patches[0])
			return err
		}
	}},
	{"merge-one", func(b *testing.B, s *staged) func() error {
		state, updates := s.committed(b), s.updates(b)
		turn := 0
		return func() error {
			turn = 1 - turn
			defer planner.Accept(state)
			return state.Apply(updates[turn])
		}
	}},
	{"diff-one", func(b *testing.B, s *staged) func() error {
		state := s.committed(b)
		s.apply(b, state, s.updates(b)[1])
		return func() error { return planned(state) }
	}},
	{"encode-one", func(b *testing.B, s *staged) func() error {
		ops := s.opsOf(b, 1)
		return func() error {
			_, err := kernel.Encode(ops)
			return err
		}
	}},
}

var (
	stageKey   = desired.Key{Publisher: "services", Name: "services"}
	stageSizes = []Services{{Count: 10, Endpoints: 10}, {Count: 100, Endpoints: 10}, {Count: 1_000, Endpoints: 10}, {Count: 10_000, Endpoints: 10}, {Count: 1, Endpoints: 100_000}}
	stageTable = nft.TableID{Family: nft.FamilyIP, Name: "weft"}
)

// staged is an update of one size in the forms that it takes.
type staged struct {
	fragment *weftv1.Fragment
	message  []byte
	update   *desired.Update
	ops      []kernel.Op
	// patches replace one endpoint, to and fro; admit packs them.
	patches [2]*weftv1.Patch
	admit   func(*weftv1.Patch) (*desired.Update, error)
}

func newStaged(b *testing.B, services Services) *staged {
	b.Helper()
	s := &staged{fragment: services.Fragment()}
	for turn := range s.patches {
		s.patches[turn] = services.ReplaceEndpoint(services.Count/2, 3, turn)
	}
	var err error
	if s.message, err = proto.Marshal(s.fragment); err != nil {
		b.Fatal(err)
	}
	if s.update, s.admit, err = admit(stageKey, s.fragment); err != nil {
		b.Fatal(err)
	}
	state := merge.New()
	s.apply(b, state, s.update)
	s.ops = planner.Make(state).Ops
	return s
}

func (s *staged) apply(b *testing.B, state *merge.State, u *desired.Update) {
	b.Helper()
	must(b, state.Apply(u))
}

// committed returns a state that has the snapshot.
func (s *staged) committed(b *testing.B) *merge.State {
	b.Helper()
	state := merge.New()
	s.apply(b, state, s.update)
	planner.Accept(state)
	return state
}

// updates returns the patches, packed.
func (s *staged) updates(b *testing.B) (out [2]*desired.Update) {
	b.Helper()
	for turn, p := range s.patches {
		var err error
		if out[turn], err = s.admit(p); err != nil {
			b.Fatal(err)
		}
	}
	return out
}

// opsOf returns the ops of patch 1 after the snapshot, or of patch 0 after patch 1.
func (s *staged) opsOf(b *testing.B, turn int) []kernel.Op {
	b.Helper()
	state, updates := s.committed(b), s.updates(b)
	s.apply(b, state, updates[1])
	if turn == 0 {
		planner.Accept(state)
		s.apply(b, state, updates[0])
	}
	return planner.Make(state).Ops
}

func planned(state *merge.State) error {
	if p := planner.Make(state); len(p.Ops) == 0 {
		return fmt.Errorf("plan is empty")
	}
	return nil
}

// BenchmarkStage measures each stage of a snapshot, and of a patch of one endpoint
// ("-one"), at several sizes. The floor of commit is the same bytes over bare system
// calls in another namespace.
func BenchmarkStage(b *testing.B) {
	for _, stage := range stages {
		for _, size := range stageSizes {
			b.Run(fmt.Sprintf("%s/services=%dx%d", stage.name, size.Count, size.Endpoints), func(b *testing.B) {
				run := stage.run(b, newStaged(b, size))
				b.ReportAllocs()
				for b.Loop() {
					must(b, run())
				}
			})
		}
	}
	for _, size := range stageSizes {
		b.Run(fmt.Sprintf("commit/services=%dx%d", size.Count, size.Endpoints), func(b *testing.B) { benchmarkCommit(b, newStaged(b, size)) })
	}
	for _, size := range stageSizes {
		b.Run(fmt.Sprintf("commit-one/services=%dx%d", size.Count, size.Endpoints), func(b *testing.B) { benchmarkCommitOne(b, newStaged(b, size)) })
	}
}

// rival is a connection and, as its floor, a bare socket in another namespace.
type rival struct {
	conn           *recorder
	bare           *bare
	measured, base []time.Duration
}

func newRival(b *testing.B, s *staged) *rival {
	b.Helper()
	_, conn := open(b)
	return &rival{conn: conn, bare: openBare(b, nfttest.New(b), len(encoded(b, s.ops)))}
}

func encoded(b *testing.B, ops []kernel.Op) []byte {
	b.Helper()
	batch, err := kernel.Encode(ops)
	must(b, err)
	return batch
}

// commit commits ops and replays their bytes, and returns how long both took.
func (r *rival) commit(b *testing.B, ops []kernel.Op, batch []byte) (took, floor time.Duration) {
	b.Helper()
	began := time.Now()
	_, err := r.conn.Conn.Commit(ops)
	took = time.Since(began)
	must(b, err)
	b.StopTimer()
	defer b.StartTimer()
	return took, r.bare.replay(b, batch)
}

// note keeps what was measured.
func (r *rival) note(took, floor time.Duration) {
	r.measured, r.base = append(r.measured, took), append(r.base, floor)
}

// report prints medians in the units of benchstat.
func (r *rival) report(b *testing.B) {
	took, floor := median(r.measured), median(r.base)
	b.ReportMetric(float64(took.Nanoseconds()), "ns/op")
	b.ReportMetric(float64(floor.Nanoseconds()), "floor-ns/op")
	b.ReportMetric(float64(took)/float64(floor), "floor-ratio")
}

func benchmarkCommit(b *testing.B, s *staged) {
	r := newRival(b, s)
	gone := []kernel.Op{kernel.DeleteTable{Table: stageTable}}
	batch, goneBatch := encoded(b, s.ops), encoded(b, gone)
	b.ReportAllocs()
	for b.Loop() {
		r.note(r.commit(b, s.ops, batch))
		b.StopTimer()
		r.commit(b, gone, goneBatch)
		b.StartTimer()
	}
	r.report(b)
}

func benchmarkCommitOne(b *testing.B, s *staged) {
	r := newRival(b, s)
	r.commit(b, s.ops, encoded(b, s.ops))
	ops := [2][]kernel.Op{s.opsOf(b, 0), s.opsOf(b, 1)}
	batches := [2][]byte{encoded(b, ops[0]), encoded(b, ops[1])}
	turn := 0
	b.ReportAllocs()
	for b.Loop() {
		turn = 1 - turn
		r.note(r.commit(b, ops[turn], batches[turn]))
	}
	r.report(b)
}

// admit compiles and packs a snapshot as Push does, and returns a function that
// does the same to patches of the fragment.
func admit(key desired.Key, f *weftv1.Fragment) (*desired.Update, func(*weftv1.Patch) (*desired.Update, error), error) {
	outer := merge.New().Scope()
	b := admission.NewSnapshot(admission.Config{}, key, outer)
	b.AddFragment(f)
	u, err := b.Finish()
	if err != nil {
		return nil, nil, err
	}
	own, _ := b.Declared()
	return u, func(p *weftv1.Patch) (*desired.Update, error) {
		b := admission.NewPatch(admission.Config{}, key, own, outer)
		b.AddPatch(p)
		return b.Finish()
	}, nil
}
