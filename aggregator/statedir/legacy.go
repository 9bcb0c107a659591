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
	fields := strings.Split(string(line), " ")
	if !ok || len(line) > maxHeader || len(fields) != 3 || fields[0] != s.kind {
		return nil, errUnsealed
	}
	version, malformed := strconv.Atoi(fields[1])
	want, err := hex.DecodeString(strings.TrimPrefix(fields[2], "sha256:"))
	sum := sha256.Sum256(payload)
	switch {
	case malformed != nil || err != nil:
		return nil, errUnsealed
	case !bytes.Equal(sum[:], want):
		return nil, errChecksum
	case version != s.version:
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

// legacyFile is one of the former files, with what reads its content.
type legacyFile struct {
	path string
	kind Kind
	seal
	decode func([]byte) error
	err    error
}

// convert reads the former files, if there are any. They are removed once the
// database is created. Damaged ones are renamed, if no other is of a version that
// cannot be read.
//
// Possible errors: ErrVersion.
func (d *Dir) convert() (*Contents, error) {
	c := &Contents{}
	files, damaged := c.legacyFiles(d.path)
	for _, f := range files {
		stale := filepath.Base(f.path) == legacyStale
		if stale && c.recorded {
			continue
		}
		b, err := f.read(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, ErrVersion):
			return nil, fmt.Errorf("%s: %w", f.path, err)
		case err == nil:
			err = f.decode(b)
		}
		if err != nil {
			f.err = err
			damaged = append(damaged, f)
			continue
		}
		d.converted = append(d.converted, f.path)
		d.outdated = d.outdated || stale
	}
	for _, f := range damaged {
		d.moveDamaged(f.path, []damage{{f.kind, fmt.Errorf("read %s: %w", f.path, f.err)}})
	}
	if d.outdated {
		c.distrust()
		d.lost(KindRecord, errOutdated)
	}
	return c, nil
}

// legacyFiles returns the former files that there may be in a directory, to be read
// into the contents, and directories that cannot be read.
func (c *Contents) legacyFiles(dir string) (files, unreadable []legacyFile) {
	files = []legacyFile{
		{path: filepath.Join(dir, legacyRecord), kind: KindRecord, seal: recordSeal, decode: c.decodeRecord},
		{path: filepath.Join(dir, legacyStale), kind: KindRecord, seal: recordSeal, decode: c.decodeRecord},
		{path: filepath.Join(dir, legacyFlows), kind: KindFlows, seal: flowsSeal, decode: func(b []byte) error { return json.Unmarshal(b, &c.Flows) }},
	}
	_ = filepath.WalkDir(filepath.Join(dir, legacyDurable), func(path string, e fs.DirEntry, err error) error {
		name, ok := strings.CutSuffix(filepath.Base(path), legacyExt)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			unreadable = append(unreadable, legacyFile{path: path, kind: KindFragment, err: err})
		case ok:
			f := Fragment{Key: desired.Key{Publisher: filepath.Base(filepath.Dir(path)), Name: name}, Content: &weftv1.Fragment{}}
			files = append(files, legacyFile{path: path, kind: KindFragment, seal: fragmentSeal, decode: func(b []byte) error {
				if err := f.decode(b); err != nil {
					return err
				}
				c.Fragments = append(c.Fragments, f)
				return nil
			}})
			if e.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	return files, unreadable
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

// decodeRecord decodes the JSON of a record.
func (c *Contents) decodeRecord(b []byte) error {
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
