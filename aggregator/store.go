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

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

const (
	// recordName is the file of the record in the state directory.
	recordName = "record.json"
	// recordVersion is that of its format; a file of another one is set aside.
	recordVersion = 1
)

// record is what the next start has to know and the kernel does not tell.
type record struct {
	Version  int            `json:"version"`
	Revision uint64         `json:"revision"`
	Books    []bookRecord   `json:"books,omitempty"`
	Desired  desired.Record `json:"desired"`
}

// bookRecord is what the books say of a fragment.
type bookRecord struct {
	Publisher string `json:"publisher"`
	Name      string `json:"name"`
	Lifetime  string `json:"lifetime"`
}

func (r bookRecord) key() desired.Key { return desired.Key{Publisher: r.Publisher, Name: r.Name} }

func (r bookRecord) lifetime() weftv1.Lifetime {
	return lifetime(weftv1.Lifetime(weftv1.Lifetime_value[r.Lifetime]))
}

// store keeps the record in the state directory.
type store struct {
	dir string
	// written is what the file holds, less the revision.
	written []byte
}

func newStore(dir string) *store { return &store{dir: dir} }

// load reads the record. Found is false where there is none. A file that can
// not be read as a record is renamed to record.json.damaged, and the error says
// so; the aggregator goes on without it.
func (s *store) load() (r record, found bool, err error) {
	if s.dir == "" {
		return record{}, false, nil
	}
	if err := os.MkdirAll(s.dir, 0o750); err != nil {
		return record{}, false, fmt.Errorf("make state directory: %w", err)
	}
	path := filepath.Join(s.dir, recordName)
	b, err := os.ReadFile(path) //nolint:gosec // the operator's directory
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err == nil && r.Version != recordVersion {
		err = fmt.Errorf("version %d: want %d", r.Version, recordVersion)
	}
	if err == nil {
		return r, true, nil
	}
	aside := path + ".damaged"
	if rerr := os.Rename(path, aside); rerr != nil {
		return record{}, false, fmt.Errorf("read record %s: %w (and %w)", path, err, rerr)
	}
	return record{}, false, fmt.Errorf("read record %s: %w: it is set aside as %s, and what only it knew belongs to nobody until its publishers return", path, err, aside)
}

// save writes the record if it differs from the last one in more than the
// revision.
func (s *store) save(d desired.Record, books []bookRecord, revision uint64) error {
	if s.dir == "" {
		return nil
	}
	r := record{Version: recordVersion, Books: books, Desired: d}
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
	if err := replaceFile(filepath.Join(s.dir, recordName), b); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	s.written = same
	return nil
}

// replaceFile replaces a file as a whole: after a crash it has the old content
// or the new one.
func replaceFile(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	if err = f.Chmod(0o600); err != nil {
		return err
	}
	if _, err = f.Write(b); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	if cerr := f.Close(); cerr != nil {
		return cerr
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename last.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator's directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
