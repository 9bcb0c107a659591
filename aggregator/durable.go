package aggregator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

const (
	// durableDir is the directory of durable fragments in the state directory:
	// one file "publisher/name.pb" for each, a sealed weft.v1.Fragment.
	durableDir = "durable"
	durableExt = ".pb"
)

// durableSeal is that of a durable fragment's file.
var durableSeal = seal{kind: "weft-fragment", version: 1}

// durables stores durable fragments, on a goroutine of its own: an update of one
// is acknowledged once it is stored, and nobody else waits for the disk.
//
// What can not be stored is tried again until it is; see PROTOCOL.md for what its
// publisher is told.
type durables struct {
	dir     string
	log     *slog.Logger
	metrics *metrics
	// retry is the time between attempts to store what could not be.
	retry time.Duration
	// tell announces a rejection.
	tell  func(*RejectedError)
	nudge chan struct{}
	// failing is why the last attempt to store something failed; nil where all
	// that was committed is stored.
	failing atomic.Pointer[error]

	mu    sync.Mutex
	queue []durableWrite

	// unstored has the content that is to be tried again. It is run's.
	unstored map[desired.Key]*content
}

// durableWrite is a durable fragment to be stored, or removed where it has no
// status, and who waits for that.
type durableWrite struct {
	content *content
	waiting []*submission
	result  Result
}

func newDurables(stateDir string, log *slog.Logger, m *metrics, retry time.Duration, tell func(*RejectedError)) *durables {
	d := &durables{log: log, metrics: m, retry: retry, tell: tell, nudge: make(chan struct{}, 1), unstored: map[desired.Key]*content{}}
	if stateDir != "" {
		d.dir = filepath.Join(stateDir, durableDir)
	}
	return d
}

// put takes over the answer to updates of one fragment.
func (d *durables) put(w durableWrite) {
	d.mu.Lock()
	d.queue = append(d.queue, w)
	d.mu.Unlock()
	select {
	case d.nudge <- struct{}{}:
	default:
	}
}

// run stores fragments until ctx ends, and then what is left.
func (d *durables) run(ctx context.Context) {
	for {
		var again <-chan time.Time
		if len(d.unstored) > 0 {
			again = time.After(d.retry)
		}
		select {
		case <-ctx.Done():
			d.again()
			d.drain()
			return
		case <-d.nudge:
			d.drain()
		case <-again:
			d.again()
		}
	}
}

// drain stores everything that is queued. Of several contents of one fragment
// the last is written.
func (d *durables) drain() {
	d.mu.Lock()
	queue := d.queue
	d.queue = nil
	d.mu.Unlock()
	for i, w := range queue {
		later := slices.ContainsFunc(queue[i+1:], func(o durableWrite) bool { return o.content.key == w.content.key })
		if later {
			continue
		}
		err := d.store(w.content)
		var rejected *RejectedError
		if err != nil {
			rejected = notStored(w.content.key, w.result.Revision, err)
			d.tell(rejected)
		}
		for _, o := range queue[:i+1] {
			if o.content.key != w.content.key {
				continue
			}
			if rejected != nil {
				o.result.Err = rejected
			}
			for _, s := range o.waiting {
				s.answer(o.result)
			}
		}
	}
}

// notStored is the answer to an update that is in force and not stored.
func notStored(key desired.Key, revision uint64, err error) *RejectedError {
	return admission.Reject(key, weftv1.Reason_REASON_LIMIT, "",
		"revision %d has it in force, but the state directory does not take it: %v: it is stored as soon as that is possible", revision, err)
}

// store writes one fragment now, and remembers it where that fails.
func (d *durables) store(r *content) error {
	err := d.write(r)
	if err == nil {
		delete(d.unstored, r.key)
		if len(d.unstored) == 0 {
			d.failing.Store(nil)
		}
		return nil
	}
	d.metrics.stateErrors.WithLabelValues(stateDurable).Inc()
	d.log.Error("durable fragment is not stored", "fragment", r.key.String(), "error", err, "retry", d.retry)
	d.unstored[r.key] = r
	d.failing.Store(&err)
	return err
}

// again tries what could not be stored.
func (d *durables) again() {
	for _, key := range slices.SortedFunc(maps.Keys(d.unstored), desired.Key.Compare) {
		if d.store(d.unstored[key]) == nil {
			d.log.Info("durable fragment is stored at last", "fragment", key.String())
		}
	}
}

// room returns why the state directory can not take a fragment whose messages
// have n bytes; its file may be larger, as its texts are written in full.
func (d *durables) room(n int) error {
	if err := makeDir(d.dir); err != nil {
		return err
	}
	return reserve(d.dir, 2*int64(n)+maxHeader)
}

// refuse returns the rejection of a patch of a durable fragment while committed
// content waits for the disk; nil where none does. (A snapshot has looked for room
// on its way here.)
func (d *durables) refuse(s *submission, f desired.Status) error {
	if s.update.Snapshot || f.Lifetime != desired.LifetimeDurable {
		return nil
	}
	if err := d.failing.Load(); err != nil {
		return admission.Reject(s.key(), weftv1.Reason_REASON_LIMIT, "", "%s", admission.NoRoom(*err))
	}
	return nil
}

func (d *durables) path(key desired.Key) string {
	// Both names are validated: no separators, no leading dots.
	return filepath.Join(d.dir, key.Publisher, key.Name+durableExt)
}

// write stores one fragment, or removes it.
func (d *durables) write(r *content) error {
	path := d.path(r.key)
	if r.status == nil {
		return removeFile(path)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(r.message())
	if err != nil {
		return err
	}
	for _, dir := range []string{d.dir, filepath.Dir(path)} {
		if err := makeDir(dir); err != nil {
			return err
		}
	}
	return durableSeal.write(path, b)
}

// load returns the stored fragments by publisher and name. What can not be read
// is set aside and reported.
func (d *durables) load() (keys []desired.Key, fragments []*weftv1.Fragment) {
	if d.dir == "" {
		return nil, nil
	}
	for _, publisher := range d.list(d.dir) {
		if !publisher.IsDir() && strings.Contains(publisher.Name(), damagedMark) {
			continue
		}
		dir := filepath.Join(d.dir, publisher.Name())
		for _, e := range d.list(dir) {
			name, ok := strings.CutSuffix(e.Name(), durableExt)
			if !ok {
				continue
			}
			key := desired.Key{Publisher: publisher.Name(), Name: name}
			f, err := readFragment(filepath.Join(dir, e.Name()), key)
			if err != nil {
				d.lose(filepath.Join(dir, e.Name()), err)
				continue
			}
			keys, fragments = append(keys, key), append(fragments, f)
		}
	}
	return keys, fragments
}

// list returns what is in a directory, in order, and removes what was left
// half-written. Something else in the place of the directory is set aside.
func (d *durables) list(dir string) []fs.DirEntry {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		d.lose(dir, err)
		return nil
	}
	return sweepTemporary(dir, entries)
}

// lose sets aside what can not be read, and reports it.
func (d *durables) lose(path string, err error) {
	d.metrics.stateErrors.WithLabelValues(stateDurable).Inc()
	aside, rerr := setAside(path)
	if rerr != nil {
		d.log.Error("durable fragment can not be read, and stays where it is", "file", path, "error", err, "rename", rerr)
		return
	}
	d.log.Error("durable fragment can not be read: it is set aside", "file", aside, "error", err)
}

func readFragment(path string, key desired.Key) (*weftv1.Fragment, error) {
	if err := errors.Join(admission.CheckIdentity("publisher", key.Publisher), admission.CheckIdentity("fragment", key.Name)); err != nil {
		return nil, err
	}
	b, err := durableSeal.read(path)
	if err != nil {
		return nil, err
	}
	return parseFragment(b, key)
}

// parseFragment decodes a stored fragment.
func parseFragment(b []byte, key desired.Key) (*weftv1.Fragment, error) {
	f := &weftv1.Fragment{}
	if err := proto.Unmarshal(b, f); err != nil {
		return nil, err
	}
	if f.GetName() != key.Name {
		return nil, fmt.Errorf("file holds fragment %q", admission.Clip(f.GetName()))
	}
	return f, nil
}

// restore commits the durable fragments of the state directory. Those that need
// others come after them, whatever their names are: who is refused is tried
// again as long as anybody succeeds.
func (w *writer) restore() error {
	keys, fragments := w.durables.load()
	for pending := len(keys); pending > 0; {
		var again []int
		var errs []error
		for i := range keys[:pending] {
			err := w.restoreOne(keys[i], fragments[i])
			var rejected *RejectedError
			if errors.As(err, &rejected) {
				again, errs = append(again, i), append(errs, err)
			} else if err != nil {
				return err
			}
		}
		if len(again) == pending {
			for i, err := range errs {
				w.log.Error("durable fragment is refused", "fragment", keys[i].String(), "error", err)
			}
			return nil
		}
		for n, i := range again {
			keys[n], fragments[n] = keys[i], fragments[i]
		}
		pending = len(again)
	}
	return nil
}

// restoreOne commits one durable fragment. The error is a *RejectedError, or the
// kernel's.
func (w *writer) restoreOne(key desired.Key, f *weftv1.Fragment) error {
	adm := admission.NewSnapshot(admission.Config{Durable: true}, key, w.state.Scope())
	adm.AddFragment(f)
	u, err := adm.Finish()
	if err != nil {
		return err
	}
	s := &submission{update: u, admitted: adm, stored: true, result: make(chan Result, 1)}
	for groups := [][]*submission{{s}}; len(groups) > 0; {
		again, err := w.commit(groups[0])
		if err != nil {
			return err
		}
		groups = again
	}
	return (<-s.result).Err
}

// conclude answers committed updates: at once, or, where the fragment is or was
// durable, once that is stored.
func (w *writer) conclude(accepted []*submission, r Result) {
	for i, s := range accepted {
		if !s.durable || s.stored {
			s.answer(r)
			continue
		}
		last := !slices.ContainsFunc(accepted[i+1:], func(o *submission) bool { return o.durable && o.key() == s.key() })
		if !last {
			continue
		}
		write := durableWrite{content: w.content(s.key()), result: r}
		for _, o := range accepted[:i+1] {
			if o.durable && o.key() == s.key() {
				write.waiting = append(write.waiting, o)
			}
		}
		if write.content.status.GetLifetime() != weftv1.Lifetime_LIFETIME_DURABLE {
			write.content.status = nil
		}
		w.durables.put(write)
	}
}
