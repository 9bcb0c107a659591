package client_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// seeds is how many seeds are tried, from 1 on: CI runs the default, and more
// are "go test ./aggregator/client -run Converges -client.seeds 200".
var seeds = flag.Uint64("client.seeds", 8, "number of seeds of the property tests")

// chaos makes the fake refuse, forget and break off at random. With breaks only
// it never refuses a stream, so that each update is judged in the end.
func chaos(f *fake, rng *rand.Rand, reasons []weftv1.Violation_Reason, breaksOnly bool) {
	var mu sync.Mutex
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
	unavailable := status.Error(codes.Unavailable, "restarting")
	ends := []error{unavailable}
	if !breaksOnly {
		ends = append(ends, status.Error(codes.PermissionDenied, "not now"), status.Error(codes.ResourceExhausted, "too many"), status.Error(codes.Internal, "bug"))
	}
	open := func() error {
		if roll(4) == 0 {
			return ends[roll(len(ends))]
		}
		return nil
	}
	judge := func(name string, _ *weftv1.PublishRequest) verdict {
		switch roll(30) {
		case 0:
			return verdict{end: ends[roll(len(ends))]}
		case 1:
			return verdict{unapplied: true, end: ends[roll(len(ends))]}
		case 2, 3, 4, 5:
			return verdict{reject: reasons[roll(len(reasons))]}
		case 6:
			delete(f.owner, name)
		case 7:
			// A reboot: everything is lost, and the stream ends.
			clear(f.held)
			clear(f.owner)
			return verdict{unapplied: true, end: unavailable}
		}
		return verdict{}
	}
	f.behave(open, judge)
}

// model is a publisher of several fragments.
type model struct {
	mu   sync.Mutex
	want map[string]map[string]bool
	// amiss are the fragments of which an update was refused in a way that the
	// publisher has to act on.
	amiss map[string]bool
}

func (m *model) snapshot(name string) *weftv1.Fragment {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.want[name] == nil {
		return nil
	}
	return fragmentOf(name, m.want[name])
}

func fragmentOf(name string, keys map[string]bool) *weftv1.Fragment {
	set := &weftv1.Set{Name: "s", Type: "ipv4_addr"}
	for _, k := range sorted(keys) {
		set.Elements = append(set.Elements, &weftv1.Element{Key: k})
	}
	return &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{Family: "ip", Name: "t", Sets: []*weftv1.Set{set}}}}
}

// step does something at random.
func (m *model) step(rng *rand.Rand, s *client.Session, name string) *client.Pending {
	key := fmt.Sprintf("10.0.0.%d", rng.IntN(8))
	m.mu.Lock()
	switch {
	case m.want[name] == nil || rng.IntN(10) == 0:
		m.want[name] = map[string]bool{key: true}
		m.mu.Unlock()
		return s.StartPut(m.snapshot(name))
	case rng.IntN(10) == 0:
		m.want[name] = nil
		m.mu.Unlock()
		return s.StartWithdraw(name)
	}
	e := &weftv1.ElementPatch{Set: "s"}
	if m.want[name][key] {
		delete(m.want[name], key)
		e.Remove = []string{key}
	} else {
		m.want[name][key] = true
		e.Add = []*weftv1.Element{{Key: key}}
	}
	m.mu.Unlock()
	return s.StartPatch(&weftv1.Patch{Fragment: name, Tables: []*weftv1.TablePatch{{Family: "ip", Name: "t", Elements: []*weftv1.ElementPatch{e}}}})
}

func (m *model) blame(name string, err error, passes bool) {
	var rejected *client.RejectedError
	if !errors.As(err, &rejected) && !errors.Is(err, client.ErrNoSnapshot) {
		return
	}
	if passes && rejected != nil && (rejected.Has(weftv1.Violation_REASON_CONFLICT) || rejected.Has(weftv1.Violation_REASON_LIMIT)) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.amiss[name] = true
}

// TestSessionConverges has a publisher with a model of its own work through
// everything that can go wrong. In the end the aggregator has what the publisher
// wants. The publisher acts on what it is told about: an update of its own that
// was refused, and a resync that was refused for good. All else is the session's
// business.
func TestSessionConverges(t *testing.T) {
	for seed := uint64(1); seed <= *seeds; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 0))
			f, ctx := newFake(t), aggregatortest.Context(t)
			m := &model{want: map[string]map[string]bool{}, amiss: map[string]bool{}}
			s := startSession(t, f.dial(t), client.SessionConfig{
				Snapshot: m.snapshot,
				OnSync:   func(name string, _ uint64, err error) { m.blame(name, err, true) },
			})
			chaos(f, rand.New(rand.NewPCG(seed, 1)), []weftv1.Violation_Reason{
				weftv1.Violation_REASON_CONFLICT, weftv1.Violation_REASON_LIMIT, weftv1.Violation_REASON_SYNTAX, weftv1.Violation_REASON_SNAPSHOT_NEEDED,
			}, false)
			m.act(ctx, t, rng, f, s)
			f.behave(nil, nil)
			m.finish(ctx, t, s)
			for _, name := range names {
				want := sorted(m.want[name])
				aggregatortest.Eventually(t, fmt.Sprintf("%s is %v", name, want), func() bool { return slices.Equal(f.keys(name), want) && (f.keys(name) == nil) == (want == nil) })
			}
		})
	}
}

var names = []string{"a", "b", "c", "d"}

// play takes steps, some of them while nothing listens; at times, and in the end, it waits for outcomes.
func play(t *testing.T, rng *rand.Rand, f *fake, steps int, step func(i int), wait func()) {
	down := false
	for i := range steps {
		step(i)
		switch roll := rng.IntN(40); {
		case down && roll < 10:
			f.start(t)
			down = false
		case !down && roll == 0:
			f.stop()
			down = true
		case !down && roll < 8:
			wait()
		}
	}
	if down {
		f.start(t)
	}
	wait()
}

// act makes 400 updates, and notes which are amiss.
func (m *model) act(ctx context.Context, t *testing.T, rng *rand.Rand, f *fake, s *client.Session) {
	type sent struct {
		name    string
		pending *client.Pending
	}
	var open []sent
	play(t, rng, f, 400, func(int) {
		name := names[rng.IntN(len(names))]
		open = append(open, sent{name, m.step(rng, s, name)})
	}, func() {
		for _, o := range open {
			_, err := o.pending.Wait(ctx)
			if ctx.Err() != nil {
				t.Fatalf("no outcome of an update of %s: %v", o.name, err)
			}
			m.blame(o.name, err, false)
		}
		open = nil
	})
}

// finish makes up for what was refused, now that nothing is.
func (m *model) finish(ctx context.Context, t *testing.T, s *client.Session) {
	aggregatortest.Eventually(t, "nothing is amiss", func() bool {
		for _, name := range names {
			m.mu.Lock()
			amiss, wanted := m.amiss[name], m.want[name] != nil
			m.amiss[name] = false
			m.mu.Unlock()
			if !amiss {
				continue
			}
			var err error
			if wanted {
				_, err = s.Put(ctx, m.snapshot(name))
			} else {
				_, err = s.Withdraw(ctx, name)
			}
			if err != nil {
				// The stream may still be the one that was broken off.
				m.mu.Lock()
				m.amiss[name] = true
				m.mu.Unlock()
				return false
			}
		}
		return true
	})
}

// TestKeepingSessionConverges has a publisher that leaves the content to the
// session: in the end the aggregator has of each fragment the last Put (or none,
// after a Withdraw) that was not refused, and the publisher does nothing for it.
func TestKeepingSessionConverges(t *testing.T) {
	for seed := uint64(1); seed <= *seeds; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 0))
			f, ctx := newFake(t), aggregatortest.Context(t)
			s := startSession(t, f.dial(t), client.SessionConfig{})
			chaos(f, rand.New(rand.NewPCG(seed, 1)), []weftv1.Violation_Reason{weftv1.Violation_REASON_CONFLICT, weftv1.Violation_REASON_REFERENCE}, true)
			type sent struct {
				name    string
				keys    map[string]bool
				pending *client.Pending
			}
			var all []sent
			play(t, rng, f, 300, func(i int) {
				u := sent{name: names[rng.IntN(len(names))], keys: map[string]bool{fmt.Sprintf("10.0.%d.%d", i>>8, i&255): true}}
				if rng.IntN(4) == 0 {
					u.keys = nil
					u.pending = s.StartWithdraw(u.name)
				} else {
					u.pending = s.StartPut(fragmentOf(u.name, u.keys))
				}
				all = append(all, u)
			}, func() { _, _ = all[len(all)-1].pending.Wait(ctx) })
			want := map[string]map[string]bool{}
			for _, u := range all {
				_, err := u.pending.Wait(ctx)
				var rejected *client.RejectedError
				if errors.As(err, &rejected) {
					continue
				}
				must(t, err)
				want[u.name] = u.keys
			}
			f.behave(nil, nil)
			for _, name := range names {
				aggregatortest.Eventually(t, fmt.Sprintf("%s is %v", name, want[name]), func() bool { return slices.Equal(f.keys(name), sorted(want[name])) })
			}
		})
	}
}
