package statedir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// The files that versions of weft before the database wrote. Each is sealed. A
// record that could not be replaced was renamed to record.json.stale.
const (
	legacyRecord  = "record.json"
	legacyStale   = "record.json.stale"
	legacyFlows   = "flows.json"
	legacyDurable = "durable" // durable/PUBLISHER/NAME.pb, a weft.v1.Fragment each
	legacyExt     = ".pb"
)

// seal is a kind of sealed file: a line with the kind, the version of the format
// and the SHA-256 of the rest, and the rest.
type seal struct {
	kind    string
	version int
}

var (
	recordSeal   = seal{"weft-record", 2}
	fragmentSeal = seal{"weft-fragment", 1}
	flowsSeal    = seal{"weft-flows", 1}
)

const (
	// maxSealed is the greatest size of a sealed file in bytes, maxHeader that of its
	// first line.
	maxSealed = 1 << 30
	maxHeader = 256
)

// Errors of sealed files.
var (
	errUnsealed = errors.New("file has no header of weft: it is damaged, or another program wrote it")
	errChecksum = errors.New("checksum does not match: the file is damaged")
)

// open returns what is sealed. Possible errors: errUnsealed, errChecksum,
// ErrVersion.
func (s seal) open(b []byte) ([]byte, error) {
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
	want, err := hex.DecodeString(strings.TrimPrefix(fields[2], "sha256:"))
	if err != nil {
		return nil, errUnsealed
	}
	if sum := sha256.Sum256(payload); !bytes.Equal(sum[:], want) {
		return nil, errChecksum
	}
	if version != s.version {
		return nil, fmt.Errorf("%w: %s has version %d, and this weft reads version %d: start the version of weft that wrote it", ErrVersion, s.kind, version, s.version)
	}
	return payload, nil
}

// read returns what is sealed in a file.
//
// Possible errors: fs.ErrNotExist, errUnsafe, those of open and of the system.
func (s seal) read(path string) ([]byte, error) {
	f, err := openTrusted(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSealed+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxSealed {
		return nil, fmt.Errorf("file has more than %d bytes", maxSealed)
	}
	return s.open(b)
}

// conversion reads the former files.
type conversion struct {
	Contents
	dir string
	// read are the files that were read, damaged those that could not be.
	read    []string
	damaged []damagedFile
	// stale is true if the record is older than the kernel.
	stale bool
}

type damagedFile struct {
	path string
	kind Kind
	err  error
}

// convert reads the former files, if there are any. They are removed once the
// database is created.
//
// Possible errors: ErrVersion.
func (d *Dir) convert() (*Contents, error) {
	c := &conversion{dir: d.path}
	for _, read := range []func() error{c.readRecord, c.readFragments, c.readFlows} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	for _, file := range c.damaged {
		renamed, err := moveDamaged(file.path)
		if err != nil {
			d.log.Error("damaged file is not renamed", "file", file.path, "error", err)
		}
		d.lost(file.kind, fmt.Errorf("read %s: %w: it was renamed to %s", file.path, file.err, renamed))
	}
	if c.stale {
		d.outdated = true
		c.distrust()
		d.lost(KindRecord, errOutdated)
	}
	d.converted = c.read
	return &c.Contents, nil
}

// removeConverted removes former files, and the directories of fragments that are
// empty then. What remains is not read again.
func removeConverted(paths []string) {
	for _, path := range paths {
		_ = os.Remove(path)
	}
	for _, path := range paths {
		if dir := filepath.Dir(path); filepath.Ext(path) == legacyExt && os.Remove(dir) == nil {
			_ = os.Remove(filepath.Dir(dir))
		}
	}
}

// file reads a sealed file and decodes it; false means that it is missing or
// damaged.
func (c *conversion) file(path string, kind Kind, s seal, decode func([]byte) error) (bool, error) {
	b, err := s.read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, ErrVersion):
		return false, fmt.Errorf("%s: %w", path, err)
	case err == nil:
		err = decode(b)
	}
	if err != nil {
		c.damaged = append(c.damaged, damagedFile{path, kind, err})
		return false, nil
	}
	c.read = append(c.read, path)
	return true, nil
}

// readRecord reads the record, or what a stale one says of lifetimes.
func (c *conversion) readRecord() error {
	for _, name := range []string{legacyRecord, legacyStale} {
		found, err := c.file(filepath.Join(c.dir, name), KindRecord, recordSeal, c.decodeRecord)
		if err != nil {
			return err
		}
		if found {
			c.stale = name == legacyStale
			return nil
		}
	}
	return nil
}

// decodeRecord decodes the JSON of a record.
func (c *conversion) decodeRecord(b []byte) error {
	var r struct {
		Revision uint64 `json:"revision"`
		Partial  bool   `json:"partial"`
		// Books has the lifetimes, such as LIFETIME_DURABLE, in earlier records.
		Books []struct {
			Publisher, Name, Lifetime string
		} `json:"books"`
		Desired desired.Record `json:"desired"`
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	c.Revision, c.Trusted, c.recorded = r.Revision, !r.Partial, true
	c.Record = Record{Partial: r.Partial, Desired: r.Desired}
	for _, old := range r.Books {
		for i, f := range r.Desired.Fragments {
			if f.Publisher == old.Publisher && f.Name == old.Name {
				r.Desired.Fragments[i].Lifetime = strings.ToLower(strings.TrimPrefix(old.Lifetime, "LIFETIME_"))
			}
		}
	}
	return nil
}

// readFragments reads the durable fragments.
func (c *conversion) readFragments() error {
	dir := filepath.Join(c.dir, legacyDurable)
	for _, publisher := range c.list(dir) {
		if !publisher.IsDir() && strings.Contains(publisher.Name(), damagedSuffix) {
			continue
		}
		for _, e := range c.list(filepath.Join(dir, publisher.Name())) {
			name, ok := strings.CutSuffix(e.Name(), legacyExt)
			if !ok {
				continue
			}
			f := Fragment{Key: desired.Key{Publisher: publisher.Name(), Name: name}, Content: &weftv1.Fragment{}}
			found, err := c.file(filepath.Join(dir, publisher.Name(), e.Name()), KindFragment, fragmentSeal, f.decode)
			if err != nil {
				return err
			}
			if found {
				c.Fragments = append(c.Fragments, f)
			}
		}
	}
	return nil
}

// decode decodes the message of a fragment.
func (f *Fragment) decode(b []byte) error {
	if err := proto.Unmarshal(b, f.Content); err != nil {
		return err
	}
	convertFields(f.Content)
	if f.Content.GetName() != f.Key.Name {
		return errors.New("the file holds a fragment of another name")
	}
	return nil
}

// list returns what is in a directory, in order.
func (c *conversion) list(dir string) []fs.DirEntry {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.damaged = append(c.damaged, damagedFile{dir, KindFragment, err})
		return nil
	}
	return entries
}

// readFlows reads the destinations whose flows are to be removed.
func (c *conversion) readFlows() error {
	_, err := c.file(filepath.Join(c.dir, legacyFlows), KindFlows, flowsSeal, func(b []byte) error { return json.Unmarshal(b, &c.flows) })
	return err
}
