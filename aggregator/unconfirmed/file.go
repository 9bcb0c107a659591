package unconfirmed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/aggregator/trusted"
)

const (
	// dirName is the directory of the files.
	dirName       = "unconfirmed"
	suffix        = ".json"
	temporary     = ".tmp"
	damagedSuffix = ".damaged"
	// version is that of the format.
	version = 1
	// maxFile is the largest file that is read, in bytes.
	maxFile = 4 * MaxContent
)

// stored is a file.
type stored struct {
	// Version is that of the format; the first files have none.
	Version   int    `json:"version"`
	Publisher string `json:"publisher"`
	Name      string `json:"name"`
	// Boot is the kernel's boot_id, and Deadline CLOCK_BOOTTIME in nanoseconds.
	Boot     string        `json:"boot"`
	Deadline time.Duration `json:"deadline"`
	// RevertTime is the same for people.
	RevertTime time.Time `json:"revertTime"`
	// Before is a weft.v1.Fragment, or null if there was none.
	Before []byte `json:"before"`
	// Sum is the FNV-1a checksum of Before.
	Sum uint64 `json:"sum"`
}

func sum(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}

// fileOf returns the name of a fragment's file, which a publisher does not choose.
func fileOf(key desired.Key) string {
	h := sha256.Sum256([]byte(key.String()))
	return hex.EncodeToString(h[:16]) + suffix
}

// encode returns the file of an entry.
func encode(key desired.Key, e *entry) ([]byte, error) {
	f := stored{Version: version, Publisher: key.Publisher, Name: key.Name, Boot: e.boot, Deadline: e.deadline, RevertTime: e.at}
	if e.before != nil {
		var err error
		if f.Before, err = proto.Marshal(e.before); err != nil {
			return nil, err
		}
		f.Sum = sum(f.Before)
	}
	return json.Marshal(f)
}

// write stores a file durably. It replaces one that was left. The disk is locked.
func (k *Keeper) write(key desired.Key, b []byte) error {
	if _, err := trusted.MakeDir(k.dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(k.dir, fileOf(key))
	if err := errors.Join(writeSynced(path+temporary, b), k.failing("write")); err != nil {
		return errors.Join(err, os.Remove(path+temporary))
	}
	if err := store.Rename(path+temporary, path); err != nil {
		return err
	}
	k.mu.Lock()
	k.entries[key].size = len(b)
	k.mu.Unlock()
	return nil
}

// remove removes a file durably. The disk is locked.
func (k *Keeper) remove(key desired.Key) error {
	if err := k.failing("remove"); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(k.dir, fileOf(key))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := store.SyncDir(k.dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeLeft removes the files that were left, and reports whether none is.
func (k *Keeper) removeLeft() bool {
	k.disk.Lock()
	defer k.disk.Unlock()
	k.mu.Lock()
	left := maps.Clone(k.entries)
	maps.DeleteFunc(left, func(_ desired.Key, e *entry) bool { return e.state != ended })
	k.mu.Unlock()
	removed := true
	for key := range left {
		if k.remove(key) != nil {
			removed = false
			continue
		}
		k.mu.Lock()
		// The name can be that of the file of an update that has come since.
		if k.active(key) == nil {
			delete(k.entries, key)
		}
		k.mu.Unlock()
	}
	return removed
}

func writeSynced(path string, b []byte) error {
	f, err := trusted.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Load reads the files. What cannot be read is logged, and renamed unless another version wrote it.
func (k *Keeper) Load() {
	if k.dir == "" {
		return
	}
	names, err := os.ReadDir(k.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.cfg.Logger.Error("updates that were not confirmed stay", "error", err)
	}
	for _, n := range names {
		path := filepath.Join(k.dir, n.Name())
		if strings.HasSuffix(path, temporary) {
			_ = os.Remove(path)
		}
		if !strings.HasSuffix(path, suffix) {
			continue
		}
		key, e, err := read(path)
		if err != nil {
			k.cfg.Logger.Error("an update that was not confirmed stays, because what was before cannot be read", "file", path, "error", err)
			if !errors.Is(err, store.ErrVersion) {
				_ = os.Rename(path, path+damagedSuffix)
			}
			continue
		}
		k.cfg.Logger.Info("fragment is not confirmed", "fragment", key.String(), "revert_time", e.at)
		k.entries[key] = e
	}
}

// read reads a file.
func read(path string) (key desired.Key, _ *entry, err error) {
	file, err := trusted.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return key, nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return key, nil, err
	}
	var f stored
	if err := json.Unmarshal(b, &f); err != nil {
		return key, nil, err
	}
	if f.Version > version {
		return key, nil, fmt.Errorf("%w: its version is %d, and this weft reads versions up to %d: another version of weft wrote it, and takes the update back when it is started again", store.ErrVersion, f.Version, version)
	}
	key = desired.Key{Publisher: f.Publisher, Name: f.Name}
	if fileOf(key) != filepath.Base(path) {
		return key, nil, fmt.Errorf("it is the file of another fragment than %s", key)
	}
	e := &entry{state: waiting, size: len(b), at: f.RevertTime, boot: f.Boot, deadline: f.Deadline, attempt: newAttempt()}
	if f.Before == nil {
		return key, e, nil
	}
	if sum(f.Before) != f.Sum {
		return key, nil, errors.New("the checksum is wrong")
	}
	e.before = &weftv1.Fragment{}
	return key, e, proto.Unmarshal(f.Before, e.before)
}
