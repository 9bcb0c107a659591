package aggregator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

const (
	// durableDir is the directory of durable fragments in the state directory:
	// one file "publisher/name.pb" for each, a weft.v1.Fragment.
	durableDir = "durable"
	durableExt = ".pb"
)

// durables stores durable fragments, on a goroutine of its own: an update of one
// is acknowledged once it is stored, and nobody else waits for the disk.
type durables struct {
	dir   string
	log   *slog.Logger
	nudge chan struct{}

	mu    sync.Mutex
	queue []durableWrite
}

// durableWrite is a durable fragment to be stored, or removed where it has no
// status, and who waits for that.
type durableWrite struct {
	content *read
	waiting []*submission
	result  Result
}

func newDurables(stateDir string, log *slog.Logger) *durables {
	d := &durables{log: log, nudge: make(chan struct{}, 1)}
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
		select {
		case <-ctx.Done():
			d.drain()
			return
		case <-d.nudge:
			d.drain()
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
		err := d.write(w.content)
		if err != nil {
			d.log.Error("durable fragment is not stored", "fragment", w.content.key.String(), "error", err)
		}
		for _, o := range queue[:i+1] {
			if o.content.key != w.content.key {
				continue
			}
			if err != nil {
				o.result.Err = fmt.Errorf("fragment %s is committed as revision %d, but not stored: %w", w.content.key, o.result.Revision, err)
			}
			for _, s := range o.waiting {
				s.answer(o.result)
			}
		}
	}
}

func (d *durables) path(key desired.Key) string {
	// Both names are validated: no separators, no leading dots.
	return filepath.Join(d.dir, key.Publisher, key.Name+durableExt)
}

// write stores one fragment, or removes it.
func (d *durables) write(r *read) error {
	path := d.path(r.key)
	if r.status == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(r.fragment())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return replaceFile(path, b)
}

// load returns the stored fragments by publisher and name. A file that can not
// be read is set aside and reported.
func (d *durables) load() (keys []desired.Key, fragments []*weftv1.Fragment) {
	if d.dir == "" {
		return nil, nil
	}
	paths, err := filepath.Glob(filepath.Join(d.dir, "*", "*"+durableExt))
	if err != nil {
		return nil, nil
	}
	slices.Sort(paths)
	for _, path := range paths {
		key := desired.Key{
			Publisher: filepath.Base(filepath.Dir(path)),
			Name:      strings.TrimSuffix(filepath.Base(path), durableExt),
		}
		f, err := readFragment(path, key)
		if err != nil {
			d.log.Error("durable fragment is lost: it is set aside", "file", path+".damaged", "error", err)
			if err := os.Rename(path, path+".damaged"); err != nil {
				d.log.Error("damaged file stays", "file", path, "error", err)
			}
			continue
		}
		keys, fragments = append(keys, key), append(fragments, f)
	}
	return keys, fragments
}

func readFragment(path string, key desired.Key) (*weftv1.Fragment, error) {
	if err := errors.Join(CheckIdentity("publisher", key.Publisher), CheckIdentity("fragment", key.Name)); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path) //nolint:gosec // the operator's directory
	if err != nil {
		return nil, err
	}
	f := &weftv1.Fragment{}
	if err := proto.Unmarshal(b, f); err != nil {
		return nil, err
	}
	if f.GetName() != key.Name {
		return nil, fmt.Errorf("file holds fragment %q", clip(f.GetName()))
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
	adm := newAdmission(key, true, nil, mergedScope{w.state.Scope()}, true)
	adm.addFragment(f, true)
	u, err := adm.finish()
	if err != nil {
		return err
	}
	after, _ := adm.own.after(adm)
	s := &submission{update: u, admitted: adm, lifetime: adm.lifetime, after: after, stored: true, result: make(chan Result, 1)}
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
		write := durableWrite{content: &read{key: s.key(), done: make(chan struct{})}, result: r}
		for _, o := range accepted[:i+1] {
			if o.durable && o.key() == s.key() {
				write.waiting = append(write.waiting, o)
			}
		}
		w.serve(write.content)
		if c, ok := w.book.claim(s.key()); ok && c.lifetime != weftv1.Lifetime_LIFETIME_DURABLE {
			write.content.status = nil
		}
		w.durables.put(write)
	}
}
