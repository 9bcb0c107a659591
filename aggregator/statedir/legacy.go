package statedir

import (
	"bytes"
	"crypto/sha256"
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
	"github.com/weft-proxy/weft/aggregator/trusted"
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

// maxSealed is how many bytes of a sealed file are read.
const maxSealed = 1 << 30

// errUnsealed means that the first line of a file does not match the rest.
var errUnsealed = errors.New("file has no header of weft, or another checksum: it is damaged, or another program wrote it")

// open returns what is sealed. Possible errors: errUnsealed, ErrVersion.
func (s seal) open(b []byte) ([]byte, error) {
	line, payload, _ := bytes.Cut(b, []byte{'\n'})
	kind, rest, _ := strings.Cut(string(line), " ")
	text, sum, _ := strings.Cut(rest, " ")
	version, err := strconv.Atoi(text)
	switch {
	case err != nil || kind != s.kind || sum != fmt.Sprintf("sha256:%x", sha256.Sum256(payload)):
		return nil, errUnsealed
	case version != s.version:
		return nil, fmt.Errorf("%w: %s has version %d, and this weft reads version %d: start the version of weft that wrote it", ErrVersion, s.kind, version, s.version)
	}
	return payload, nil
}

// read returns what is sealed in a file.
//
// Possible errors: fs.ErrNotExist, trusted.ErrUnsafe, those of open and of the system.
func (s seal) read(path string) ([]byte, error) {
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := trusted.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSealed))
	if err != nil {
		return nil, err
	}
	return s.open(b)
}

// legacyFile is one of the former files, with what reads its content.
type legacyFile struct {
	path string
	kind Kind
	seal
	decode func([]byte) error
}

// convert reads the former files, if there are any. They are removed once the
// database is created. Damaged ones are renamed, if no other is of a version that
// cannot be read.
//
// Possible errors: ErrVersion.
func (d *Dir) convert() (*Contents, error) {
	c := &Contents{}
	damaged := make(map[string]damage)
	for _, f := range c.legacyFiles(d.path) {
		b, err := f.read(f.path)
		stale := filepath.Base(f.path) == legacyStale
		switch {
		case errors.Is(err, fs.ErrNotExist) || stale && c.recorded:
			continue
		case errors.Is(err, ErrVersion):
			return nil, fmt.Errorf("%s: %w", f.path, err)
		case err == nil:
			err = f.decode(b)
		}
		if err != nil {
			damaged[f.path] = damage{f.kind, fmt.Errorf("read %s: %w", f.path, err)}
			continue
		}
		d.converted = append(d.converted, f.path)
		d.outdated = d.outdated || stale
	}
	for path, lost := range damaged {
		d.moveDamaged(path, []damage{lost})
	}
	if d.outdated {
		c.distrust()
		d.lost(KindRecord, errOutdated)
	}
	return c, nil
}

// legacyFiles returns the former files that there may be in a directory, to be read
// into the contents.
func (c *Contents) legacyFiles(dir string) []legacyFile {
	files := []legacyFile{
		{filepath.Join(dir, legacyRecord), KindRecord, recordSeal, c.decodeRecord},
		{filepath.Join(dir, legacyStale), KindRecord, recordSeal, c.decodeRecord},
		{filepath.Join(dir, legacyFlows), KindFlows, flowsSeal, func(b []byte) error { return json.Unmarshal(b, &c.Flows) }},
	}
	paths, _ := fs.Glob(os.DirFS(dir), legacyDurable+"/*/*"+legacyExt)
	for _, path := range paths {
		key := desired.Key{Publisher: filepath.Base(filepath.Dir(path)), Name: strings.TrimSuffix(filepath.Base(path), legacyExt)}
		files = append(files, legacyFile{filepath.Join(dir, path), KindDurable, fragmentSeal, func(b []byte) error {
			f := Fragment{Key: key, Content: &weftv1.Fragment{}}
			err := f.decode(b)
			if err == nil {
				c.Fragments = append(c.Fragments, f)
			}
			return err
		}})
	}
	return files
}

// removeConverted removes the former files that were read, and the directories of
// fragments that are empty then. What remains is not read again.
func (d *Dir) removeConverted() {
	dirs, _ := fs.Glob(os.DirFS(d.path), legacyDurable+"/*")
	for _, path := range d.converted {
		_ = os.Remove(path)
	}
	for _, dir := range append(dirs, legacyDurable) {
		_ = os.Remove(filepath.Join(d.path, dir))
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
