package aggregator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weft-proxy/weft/conntrack"
)

// noteName is the file of the notes in the state directory.
const noteName = "flows.json"

// noteSeal marks the file of the notes.
var noteSeal = seal{kind: "weft-flows", version: 1}

// flowNotes stores the notes of package flows in a file of the state directory.
// It implements flows.Notes. The file is not synced to the disk, because flows do
// not outlive the kernel.
type flowNotes struct {
	dir string
	// written is true while the file may exist.
	written bool
}

func (n *flowNotes) path() string { return filepath.Join(n.dir, noteName) }

// Load reads what an earlier run has noted. A file that cannot be read is
// removed.
func (n *flowNotes) Load() (noted []conntrack.Stale, err error) {
	n.written = true
	b, err := noteSeal.read(n.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &noted)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read note %s: %w", n.path(), err), n.remove())
	}
	return noted, nil
}

// Save replaces the file, or removes it if there are no notes.
func (n *flowNotes) Save(noted []conntrack.Stale) error {
	if len(noted) == 0 {
		return n.remove()
	}
	b, err := json.Marshal(noted)
	if err != nil {
		return fmt.Errorf("encode note: %w", err)
	}
	n.written = true
	if err := writeUnsynced(n.path(), noteSeal.add(b)); err != nil {
		return fmt.Errorf("write note: %w", err)
	}
	return nil
}

func (n *flowNotes) remove() error {
	if !n.written {
		return nil
	}
	if err := os.Remove(n.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove note: %w", err)
	}
	n.written = false
	return nil
}

// writeUnsynced replaces a file atomically, without syncing it to the disk.
func writeUnsynced(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+tmpMark+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
