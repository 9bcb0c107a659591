package aggregator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired"
)

const (
	// recordName is the file of the record in the state directory.
	recordName = "record.json"
	// recordVersion is that of its format; a file of another one is set aside.
	recordVersion = 2
)

// record is what the next start has to know and the kernel does not tell.
type record struct {
	Version  int    `json:"version"`
	Revision uint64 `json:"revision"`
	// Partial is true while there is something in the kernel that no fragment is
	// known for, as the record before this one was lost.
	Partial bool           `json:"partial,omitempty"`
	Desired desired.Record `json:"desired"`
	// Books has the lifetimes in records of earlier versions.
	Books []struct {
		Publisher string `json:"publisher"`
		Name      string `json:"name"`
		Lifetime  string `json:"lifetime"`
	} `json:"books,omitempty"`
}

// identities returns the record without anything that the fragments hold.
func (r record) identities() record {
	out := record{Version: r.Version, Revision: r.Revision}
	for _, f := range r.Desired.Fragments {
		out.Desired.Fragments = append(out.Desired.Fragments, desired.FragmentRecord{Publisher: f.Publisher, Name: f.Name, Lifetime: f.Lifetime})
	}
	return out
}

// recordSeal is that of the record's file.
var recordSeal = seal{kind: "weft-record", version: recordVersion}

// staleMark ends the name of a record that is older than the kernel: the one
// after it could not be written.
const staleMark = ".stale"

// store keeps the record in the state directory.
type store struct {
	dir string
	// written is what the file holds, less the revision.
	written []byte
	// stale is true when the file has been renamed as it is behind.
	stale bool
}

func newStore(dir string) *store { return &store{dir: dir} }

func (s *store) path() string { return filepath.Join(s.dir, recordName) }

// load reads the record. Found is false where there is none, or none to rely on.
// A file that can not be read as a record is set aside, and the error says so; the
// aggregator goes on without it. Of a record that is behind the kernel only the
// books are returned: they name fragments, and give no elements away.
func (s *store) load() (r record, found bool, err error) {
	if s.dir == "" {
		return record{}, false, nil
	}
	if err := makeDir(s.dir); err != nil {
		return record{}, false, fmt.Errorf("make state directory: %w", err)
	}
	if entries, err := os.ReadDir(s.dir); err == nil {
		sweepTemporary(s.dir, entries)
	}
	r, err = readRecord(s.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.loadStale()
	case err != nil:
		return record{}, false, s.lose(err)
	}
	if err := reserve(s.dir, 0); err != nil {
		// What was committed last may not be in it.
		return r.identities(), false,
			fmt.Errorf("state directory can not be written, so the record may be old: what only it knew belongs to nobody until its publishers return: %w", err)
	}
	return r, !r.Partial, nil
}

// loadStale reads the books of a record that is known to be behind.
func (s *store) loadStale() (record, bool, error) {
	r, err := readRecord(s.path() + staleMark)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	s.stale = true
	if err != nil {
		return record{}, false, fmt.Errorf("read record %s: %w", s.path()+staleMark, err)
	}
	return r.identities(), false,
		fmt.Errorf("the last record could not be written: what only it knew belongs to nobody until its publishers return")
}

// lose sets the record aside, and returns the error that says so.
func (s *store) lose(err error) error {
	aside, rerr := setAside(s.path())
	if rerr != nil {
		return fmt.Errorf("read record %s: %w (and %w)", s.path(), err, rerr)
	}
	return fmt.Errorf("read record %s: %w: it is set aside as %s, and what only it knew belongs to nobody until its publishers return", s.path(), err, aside)
}

func readRecord(path string) (record, error) {
	b, err := recordSeal.read(path)
	if err != nil {
		return record{}, err
	}
	return parseRecord(b)
}

// parseRecord decodes a record.
func parseRecord(b []byte) (r record, err error) {
	if err := json.Unmarshal(b, &r); err != nil {
		return record{}, err
	}
	if r.Version != recordVersion {
		return record{}, fmt.Errorf("version %d: want %d", r.Version, recordVersion)
	}
	for _, old := range r.Books {
		for i, f := range r.Desired.Fragments {
			if f.Publisher == old.Publisher && f.Name == old.Name {
				r.Desired.Fragments[i].Lifetime = strings.ToLower(strings.TrimPrefix(old.Lifetime, "LIFETIME_"))
			}
		}
	}
	r.Books = nil
	return r, nil
}

// save writes the record if it differs from the last one in more than the
// revision. Where that fails, the one that is there is marked as stale.
func (s *store) save(r record) error {
	if s.dir == "" {
		return nil
	}
	revision := r.Revision
	r.Version, r.Revision = recordVersion, 0
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	if bytes.Equal(b, s.written) {
		return nil
	}
	same := slices.Clone(b)
	r.Revision = revision
	if b, err = json.Marshal(r); err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	if err := recordSeal.write(s.path(), b); err != nil {
		return errors.Join(fmt.Errorf("write record: %w", err), s.outdate())
	}
	s.written = same
	if s.stale {
		s.stale = false
		return removeFile(s.path() + staleMark)
	}
	return nil
}

// outdate renames a record that is behind what is about to be committed, so that
// the next start does not give elements to the wrong fragments.
func (s *store) outdate() error {
	s.written = nil
	err := os.Rename(s.path(), s.path()+staleMark)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("mark record as stale: %w", err)
	}
	s.stale = true
	return syncDir(s.dir)
}
