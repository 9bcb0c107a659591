package unconfirmed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// file is what the model knows of a file.
type file struct {
	before, boot string
	deadline     time.Duration
}

// fragment is a fragment of the model.
type fragment struct {
	// content is what is in force, "" for nothing.
	content string
	// phase is "" for a fragment that waits for nothing, else waiting or reverting.
	phase   string
	before  string
	overdue bool
	pending *attempt
	// file is there until the file is removed, and onceMore the deadline of the process.
	file     *file
	deadline time.Duration
	boot     string
}

// world is what a Keeper meets, and the model of it.
type world struct {
	t    *testing.T
	r    *rand.Rand
	dir  string
	k    *Keeper
	log  []string
	keys []desired.Key
	// content is what is in force, as Config.Revert and the updates leave it.
	content map[desired.Key]string
	model   map[desired.Key]*fragment

	now                                 time.Duration
	boot                                string
	bootFails, writeFails, removeFails  bool
	revertFails, known                  bool
	updates, confirms, reverted, timely int
}

var errFault = errors.New("injected")

func fault(on bool) error {
	if on {
		return errFault
	}
	return nil
}

// start starts a process, which reads the directory.
func (w *world) start() {
	s := storeOf(w.t, w.dir, w.k)
	w.k = New(Config{Store: s, Retry: time.Millisecond, Logger: slog.New(slog.DiscardHandler), Revert: func(_ context.Context, key desired.Key, before *weftv1.Fragment) error {
		if w.revertFails {
			return errFault
		}
		w.content[key] = before.GetNft()
		return nil
	}})
	w.k.readBoot = func() (string, error) { return w.boot, fault(w.bootFails) }
	w.k.now = func() time.Duration { return w.now }
	w.k.failing = func(operation string) error {
		return fault(operation == "write" && w.writeFails || operation == "remove" && w.removeFails)
	}
	must(w.t, s.Load())
	w.k.Load()
	w.known = false
	for _, m := range w.model {
		m.phase, m.overdue, m.pending = "", false, nil
		if f := m.file; f != nil {
			m.phase, m.before, m.deadline, m.boot = "waiting", f.before, f.deadline, f.boot
		}
	}
}

// removed is the model of the end of an entry.
func (w *world) removed(m *fragment) {
	m.phase, m.overdue, m.pending = "", false, nil
	if !w.removeFails {
		m.file = nil
	}
}

func message(content string) *weftv1.Fragment {
	if content == "" {
		return nil
	}
	return &weftv1.Fragment{Nft: content}
}

// apply makes an update that is to be confirmed. It ends early if the process is killed.
func (w *world) apply(key desired.Key, refused bool, killed int) {
	m, after := w.model[key], time.Duration(1+w.r.IntN(20))*time.Second
	if err := w.k.Reserve(key); (err != nil) != (m.phase != "") {
		w.t.Fatalf("reserve: %v, and the model is %+v\n%v", err, m, w.log)
	} else if err != nil {
		return
	}
	_, err := w.k.Begin(key, message(w.content[key]), after)
	w.known = w.known || !w.bootFails
	if fails := !w.known || w.writeFails; fails != (err != nil) || fails && !errors.Is(err, ErrNotStored) {
		w.t.Fatalf("begin: %v\n%v", err, w.log)
	}
	if err != nil {
		w.k.Cancel(key)
		w.removed(m)
		return
	}
	m.before, m.boot, m.deadline = m.content, w.boot, w.now+after
	m.file = &file{before: m.before, boot: m.boot, deadline: m.deadline}
	switch {
	case killed == 1:
		w.start()
		return
	case refused:
		w.k.Cancel(key)
		w.removed(m)
		return
	}
	w.updates++
	m.content = fmt.Sprint("content ", w.updates)
	w.content[key] = m.content
	if killed == 2 {
		w.start()
		return
	}
	m.phase = "waiting"
	w.k.Committed(key)
}

// update makes an update of another kind, which is refused while the fragment waits.
func (w *world) update(key desired.Key) {
	m := w.model[key]
	if _, waits := w.k.Waits(key); waits {
		return
	}
	w.updates++
	m.content = fmt.Sprint("content ", w.updates)
	w.content[key] = m.content
}

func (w *world) confirm(key desired.Key) {
	m, err := w.model[key], w.k.Confirm(key)
	var want error
	switch {
	case m.phase == "":
		want = ErrNone
	case m.phase == "reverting":
		want = ErrReverting
	case w.removeFails:
		want = ErrNotStored
	}
	if !errors.Is(err, want) || want == nil && err != nil {
		w.t.Fatalf("confirm: %v, want %v\n%v", err, want, w.log)
	}
	if err == nil {
		w.confirms++
		w.removed(m)
	}
}

// revert asks for a revert, which the next step carries out.
func (w *world) revert(key desired.Key) {
	m := w.model[key]
	a, err := w.k.from(key, reverting)
	if (a == nil) != (m.phase == "") {
		w.t.Fatalf("revert: %v, and the model is %+v\n%v", err, m, w.log)
	}
	if a != nil {
		m.phase, m.pending = "reverting", a
	}
}

func (w *world) step() {
	w.k.step(w.t.Context())
	w.known = w.known || !w.bootFails
	for key, m := range w.model {
		over := m.overdue || w.known && (m.boot != w.boot || m.deadline <= w.now)
		pending := m.pending
		switch {
		case m.phase == "" && !w.removeFails:
			m.file = nil
		case m.phase == "reverting" || m.phase == "waiting" && over:
			if w.revertFails {
				m.phase, m.overdue, m.pending = "waiting", true, nil
				break
			}
			w.reverted++
			if m.phase == "waiting" {
				w.timely++
			}
			m.content = m.before
			w.removed(m)
		}
		if pending == nil {
			continue
		}
		select {
		case <-pending.done:
			if !errors.Is(pending.err, fault(w.revertFails)) {
				w.t.Fatalf("revert of %s ends with %v\n%v", key, pending.err, w.log)
			}
		default:
			w.t.Fatalf("revert of %s hangs\n%v", key, w.log)
		}
	}
}

// check compares everything with the model.
func (w *world) check() {
	w.t.Helper()
	for _, key := range w.keys {
		m := w.model[key]
		if _, waits := w.k.Waits(key); waits != (m.phase != "") {
			w.t.Fatalf("%s waits: %v, and the model is %+v\n%v", key, waits, m, w.log)
		}
		if w.content[key] != m.content {
			w.t.Fatalf("%s has %q, and the model is %+v\n%v", key, w.content[key], m, w.log)
		}
	}
}

// TestModel has random sequences of everything that happens to updates that are to be confirmed: a fragment waits, is
// taken back or waits for nothing, as in the model, and what it has is what the model has. In the end, with all faults
// gone and all times over, nothing waits and no file is left.
func TestModel(t *testing.T) {
	var updates, confirms, reverted, timely int
	for seed := range 40 {
		w := &world{t: t, dir: t.TempDir(), boot: "boot 0", content: map[desired.Key]string{}, model: map[desired.Key]*fragment{}}
		for i := range 3 {
			key := desired.Key{Publisher: "tester", Name: fmt.Sprint("list", i)}
			w.keys = append(w.keys, key)
			w.model[key] = &fragment{}
		}
		w.start()
		r := rand.New(rand.NewPCG(uint64(seed), 1)) //nolint:gosec // a test
		w.r = r
		events := []struct {
			name string
			do   func(desired.Key)
		}{
			{"apply", func(key desired.Key) { w.apply(key, false, 0) }},
			{"apply again", func(key desired.Key) { w.apply(key, false, 0) }},
			{"apply, refused", func(key desired.Key) { w.apply(key, true, 0) }},
			{"apply, killed before the commit", func(key desired.Key) { w.apply(key, false, 1) }},
			{"apply, killed after the commit", func(key desired.Key) { w.apply(key, false, 2) }},
			{"update", w.update}, {"confirm", w.confirm}, {"confirm again", w.confirm}, {"revert", w.revert},
			{"time", func(desired.Key) { w.now += time.Duration(r.IntN(8)) * time.Second }},
			{"step", func(desired.Key) { w.step() }}, {"step again", func(desired.Key) { w.step() }},
			{"restart", func(desired.Key) { w.start() }},
			{"reboot", func(desired.Key) { w.boot, w.now = w.boot+"'", 0; w.start() }},
			{"disk", func(desired.Key) { w.writeFails = r.IntN(3) == 0 }},
			{"disk", func(desired.Key) { w.removeFails = r.IntN(3) == 0 }},
			{"boot", func(desired.Key) { w.bootFails = r.IntN(2) == 0 }},
			{"kernel", func(desired.Key) { w.revertFails = r.IntN(3) == 0 }},
		}
		for range 80 {
			e, key := events[r.IntN(len(events))], w.keys[r.IntN(len(w.keys))]
			w.log = append(w.log, e.name+" "+key.Name)
			e.do(key)
			w.check()
		}
		w.writeFails, w.removeFails, w.bootFails, w.revertFails = false, false, false, false
		w.now += time.Hour
		w.step()
		w.check()
		for _, key := range w.keys {
			if _, waits := w.k.Waits(key); waits {
				t.Fatalf("seed %d: %s is refused for ever\n%v", seed, key, w.log)
			}
		}
		if w.k.Kept("tester") != 0 {
			t.Fatalf("seed %d: %d bytes are kept for ever\n%v", seed, w.k.Kept("tester"), w.log)
		}
		w.start()
		w.check()
		must(t, w.k.cfg.Store.Close())
		updates, confirms, reverted, timely = updates+w.updates, confirms+w.confirms, reverted+w.reverted, timely+w.timely
	}
	t.Logf("%d updates, %d confirmed, %d taken back, %d of them because their time was over", updates, confirms, reverted, timely)
	if min(updates, confirms, reverted, timely) < 40 {
		t.Errorf("the sequences reach too little")
	}
}
