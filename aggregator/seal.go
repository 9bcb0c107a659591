package aggregator

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// seal is a kind of file in the state directory: one line that says the kind,
// the version of the format and the SHA-256 of the rest, and the rest. What was
// cut off, changed by a failing disk, or written by another version is told
// from what weft wrote.
type seal struct {
	kind    string
	version int
}

// maxSealed bounds what is read of a file, in bytes; a fragment's parts have 512
// MiB together.
const maxSealed = 1 << 30

// maxHeader bounds the first line, in bytes.
const maxHeader = 256

// Errors of sealed files.
var (
	errUnsealed = errors.New("file has no header of weft's: it is damaged, or was not written by weft")
	errChecksum = errors.New("checksum does not match: the file is damaged")
	errUnsafe   = errors.New("others can write the file")
)

// add returns the content of a file.
func (s seal) add(payload []byte) []byte {
	sum := sha256.Sum256(payload)
	b := make([]byte, 0, maxHeader+len(payload))
	b = fmt.Appendf(b, "%s %d sha256:%x\n", s.kind, s.version, sum)
	return append(b, payload...)
}

// remove returns what was sealed. Possible errors: errUnsealed, errChecksum, and
// one that names another version.
func (s seal) remove(b []byte) ([]byte, error) {
	line, payload, ok := bytes.Cut(b, []byte{'\n'})
	if !ok || len(line) > maxHeader {
		return nil, errUnsealed
	}
	fields := strings.Split(string(line), " ")
	if len(fields) != 3 || fields[0] != s.kind {
		return nil, errUnsealed
	}
	version, err := strconv.Atoi(fields[1])
	if err != nil {
		return nil, errUnsealed
	}
	if version != s.version {
		return nil, fmt.Errorf("version %d: want %d", version, s.version)
	}
	want, err := hex.DecodeString(strings.TrimPrefix(fields[2], "sha256:"))
	if err != nil {
		return nil, errUnsealed
	}
	if sum := sha256.Sum256(payload); !bytes.Equal(sum[:], want) {
		return nil, errChecksum
	}
	return payload, nil
}

// read returns what is sealed in a file. A file that is not a plain one, or that
// somebody else than root and this process's user can write, is an error: whoever
// writes there decides on rules.
//
// Possible errors: fs.ErrNotExist, errUnsafe, those of remove and of the system.
func (s seal) read(path string) ([]byte, error) {
	// A FIFO must not block the start, nor a link lead somewhere else.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0) //nolint:gosec // the operator's directory
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := trusted(info); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSealed+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxSealed {
		return nil, fmt.Errorf("file has more than %d bytes", maxSealed)
	}
	return s.remove(b)
}

// trusted returns why a file can not be weft's own.
func trusted(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: want a plain file", info.Mode())
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("mode %04o: %w: chmod go-w", mode, errUnsafe)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("owner is not known")
	}
	if self := os.Geteuid(); st.Uid != 0 && int(st.Uid) != self {
		return fmt.Errorf("owner is uid %d, not %d: %w: chown it", st.Uid, self, errUnsafe)
	}
	return nil
}

// write replaces a file by sealed content, as a whole: after a crash it has the
// old content or the new one.
func (s seal) write(path string, payload []byte) error {
	return replaceFile(path, s.add(payload))
}

// tmpMark is in the names of files that are being written.
const tmpMark = ".tmp-"

// replaceFile replaces a file as a whole and makes that last. Where it fails the
// file is as it was, and nothing is left beside it.
func replaceFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+tmpMark+"*")
	if err != nil {
		return err
	}
	if err := errors.Join(writeDown(f, b), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// writeDown writes a new file down to the disk.
func writeDown(f *os.File, b []byte) error {
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Sync()
}

// removeFile removes a file and makes that last; one that is not there is no
// error.
func removeFile(path string) error {
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// makeDir makes a directory and makes that last.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// syncDir makes changes of names last.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator's directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// damagedMark is in the names of files that were set aside.
const damagedMark = ".damaged"

// maxAside bounds how many damaged files of one name are kept.
const maxAside = 10

// setAside renames a damaged file (or whatever is in its place) and returns its
// new name: path.damaged, or path.damaged-1 and so on where that exists.
func setAside(path string) (string, error) {
	for i := range maxAside {
		aside := path + damagedMark
		if i > 0 {
			aside += "-" + strconv.Itoa(i)
		}
		if _, err := os.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return aside, os.Rename(path, aside)
	}
	return "", fmt.Errorf("%d damaged files of this name are kept already: remove them", maxAside)
}

// temporary matches the names that os.CreateTemp gives, and no fragment's.
var temporary = regexp.MustCompile(regexp.QuoteMeta(tmpMark) + `[0-9]+$`)

// sweepTemporary removes what a crash has left half-written in a directory, and
// returns the other entries.
func sweepTemporary(dir string, entries []fs.DirEntry) []fs.DirEntry {
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		if !e.Type().IsRegular() || !temporary.MatchString(e.Name()) {
			return false
		}
		_ = os.Remove(filepath.Join(dir, e.Name()))
		return true
	})
}

// reserve finds out whether a directory has room for a file of n bytes; with 0,
// whether a file can be made at all.
func reserve(dir string, n int64) error {
	f, err := os.CreateTemp(dir, "room"+tmpMark+"*")
	if err != nil {
		return err
	}
	defer func() { _, _ = f.Close(), os.Remove(f.Name()) }()
	if n == 0 {
		return nil
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil // writing it will tell
	}
	if err != nil {
		return fmt.Errorf("reserve %d bytes in %s: %w", n, dir, err)
	}
	return nil
}
