package statedir

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/aggregator/trusted"
)

// The buckets, and the keys of the first one. See doc.go.
var (
	stateBucket     = []byte("state")
	fragmentsBucket = []byte("fragments")
	stagedBucket    = []byte("staged")
	lineageBucket   = []byte("lineage")
	sharesBucket    = []byte("shares")

	versionKey   = []byte("version")
	revisionKey  = []byte("revision")
	recordKey    = []byte("record")
	flowsKey     = []byte("flows")
	fragmentsKey = []byte("fragments")

	lineageKey = []byte("id")

	stateKeys = [][]byte{versionKey, revisionKey, recordKey, flowsKey, fragmentsKey}
)

// The versions of the database's format. A database has the first one that can hold its
// contents, so that a weft from before the later ones reads it where it can.
const (
	firstVersion = 1
	// configuredVersion says which fragments are of publishers of the configuration.
	configuredVersion = 2
	// apartVersion has shares of tables apart from the record.
	apartVersion = 3
	// expiryVersion has elements with expire_time.
	expiryVersion = 4
	lastVersion   = expiryVersion
)

// damage is a part of a database that could not be read.
type damage struct {
	kind Kind
	err  error
}

// createDatabase creates a database that holds c, in place of the one that is
// there. A database is never written by another process than the one that created
// it: damage that reading does not find, such as in the list of free pages, does
// not spread.
func createDatabase(path string, c *Contents) (*bolt.DB, error) {
	temporary := path + temporarySuffix
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := reserve(filepath.Dir(path), c.size()); err != nil {
		return nil, err
	}
	// It is synced once, as a whole.
	db, err := store.Open(temporary, &bolt.Options{NoSync: true})
	if err != nil {
		return nil, err
	}
	err = c.write(db)
	if err == nil {
		err = db.Sync()
	}
	if err == nil {
		err = store.Rename(temporary, path)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close(), os.Remove(temporary))
	}
	db.NoSync = false
	return db, nil
}

// size is about the number of bytes that the contents have in a database.
func (c *Contents) size() int64 {
	n := minRoom
	for _, f := range c.Fragments {
		n += proto.Size(f.Content)
	}
	return int64(n)
}

// write writes the contents to a new database.
func (c *Contents) write(db *bolt.DB) error {
	if err := db.Update(c.writeState); err != nil {
		return err
	}
	for _, f := range c.Fragments {
		if err := putInParts(db.Update, fragmentsBucket, f.Key, entriesOf(f.Content, f.Configured)); err != nil {
			return err
		}
	}
	return nil
}

// writeState writes the buckets, and all but the fragments.
func (c *Contents) writeState(tx *bolt.Tx) error {
	for _, name := range [][]byte{stateBucket, fragmentsBucket, stagedBucket, lineageBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	errs := []error{putVersion(tx, firstVersion), putRevision(tx, c.Revision), tx.Bucket(lineageBucket).Put(lineageKey, []byte(c.Lineage))}
	if c.recorded {
		errs = append(errs, putJSON(tx, recordKey, c.Record))
	}
	if len(c.Flows) > 0 {
		errs = append(errs, putJSON(tx, flowsKey, c.Flows))
	}
	return errors.Join(errs...)
}

// readDatabase returns what a database holds that can be read, and the damage.
//
// Possible errors: fs.ErrNotExist, store.ErrVersion, store.ErrInUse.
func readDatabase(path string) (c *Contents, damaged []damage, err error) {
	c = &Contents{}
	db, err := store.Open(path, &bolt.Options{ReadOnly: true})
	if err == nil {
		defer func() { _ = db.Close() }()
		err = store.Guarded(func() error {
			return db.View(func(tx *bolt.Tx) error {
				damaged, err = c.read(tx)
				return err
			})
		})
		if lost := checkMeta(path, int64(db.Info().PageSize)); lost != nil && err == nil {
			c.distrust()
			damaged = append(damaged, damage{KindRecord, lost}, damage{KindDurable, lost})
		}
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrVersion) || errors.Is(err, store.ErrInUse) {
		return c, damaged, err
	}
	// Nothing of it can be used.
	err = fmt.Errorf("read database %s: %w", filepath.Base(path), err)
	return &Contents{}, []damage{{KindRecord, err}, {KindDurable, err}}, nil
}

const (
	// metaOffset is where the meta data of bbolt begins in pages 0 and 1, metaSize
	// its length without the checksum (bbolt's internal/common.Meta).
	metaOffset = 16
	metaSize   = 56
)

// checkMeta returns an error if one of the two copies of the meta data is damaged.
// bbolt falls back to the other one, which is that of the transaction before. No
// crash leaves a copy damaged: it is less than a sector.
func checkMeta(path string, pageSize int64) error {
	f, err := trusted.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for page := range int64(2) {
		var b [metaSize + 8]byte
		if _, err := f.ReadAt(b[:], page*pageSize+metaOffset); err != nil {
			return err
		}
		h := fnv.New64a()
		_, _ = h.Write(b[:metaSize])
		if binary.NativeEndian.Uint64(b[metaSize:]) != h.Sum64() {
			return fmt.Errorf("%w: the last change may be missing", store.ErrDamaged)
		}
	}
	return nil
}

// read reads all that a database holds, each part on its own.
func (c *Contents) read(tx *bolt.Tx) (damaged []damage, err error) {
	version, err := getState(tx, versionKey)
	switch {
	case err != nil:
		return nil, err
	case version == nil:
		return nil, fmt.Errorf("%w: it has no version", store.ErrDamaged)
	}
	if err := store.CheckVersion(version, firstVersion, lastVersion); err != nil {
		return nil, err
	}
	part := func(kind Kind, f func() error) {
		if err := store.Guarded(f); err != nil {
			damaged = append(damaged, damage{kind, err})
		}
	}
	part(KindRecord, func() error {
		b, err := getState(tx, revisionKey)
		if err == nil && b != nil {
			c.Revision = binary.BigEndian.Uint64(b)
		}
		return err
	})
	part(KindRecord, func() (err error) {
		if c.recorded, err = getJSON(tx, recordKey, &c.Record); err != nil {
			return err
		}
		if err = readShares(tx, &c.Record.Desired); err != nil {
			c.distrust()
			return err
		}
		c.Trusted = c.recorded && !c.Record.Partial
		return nil
	})
	part(KindRecord, func() error { return checkStateKeys(tx) })
	part(KindFlows, func() error {
		_, err := getJSON(tx, flowsKey, &c.Flows)
		return err
	})
	c.readFragments(tx, part)
	if b := tx.Bucket(lineageBucket); b != nil {
		c.Lineage = string(b.Get(lineageKey))
	}
	return damaged, nil
}

// putState stores a value of the bucket "state", followed by a checksum of the
// key and the value.
func putState(tx *bolt.Tx, key, value []byte) error {
	b := append(make([]byte, 0, len(value)+8), value...)
	return tx.Bucket(stateBucket).Put(key, binary.BigEndian.AppendUint64(b, store.Checksum(key, value)))
}

// putVersion stores the version of the format, if it is later than that of the database.
func putVersion(tx *bolt.Tx, version int) error {
	was, err := getState(tx, versionKey)
	if n, _ := strconv.Atoi(string(was)); err != nil || n >= version {
		return err
	}
	return putState(tx, versionKey, []byte(strconv.Itoa(version)))
}

// getState returns a value of the bucket "state"; nil if it is missing.
func getState(tx *bolt.Tx, key []byte) ([]byte, error) {
	bucket := tx.Bucket(stateBucket)
	if bucket == nil {
		return nil, store.ErrDamaged
	}
	b := bucket.Get(key)
	if b == nil {
		return nil, nil
	}
	n := len(b) - 8
	if n < 0 || binary.BigEndian.Uint64(b[n:]) != store.Checksum(key, b[:n]) {
		return nil, store.ErrDamaged
	}
	return b[:n], nil
}

// checkStateKeys returns an error if a key of the bucket "state" is damaged: the value
// would be missing without a trace.
func checkStateKeys(tx *bolt.Tx) error {
	return tx.Bucket(stateBucket).ForEach(func(key, _ []byte) error {
		if !slices.ContainsFunc(stateKeys, func(known []byte) bool { return bytes.Equal(known, key) }) {
			return fmt.Errorf("%w: unknown key %q", store.ErrDamaged, key)
		}
		return nil
	})
}

// putJSON stores a value of the bucket "state" as JSON.
func putJSON(tx *bolt.Tx, key []byte, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return putState(tx, key, b)
}

// getJSON reads what putJSON stored; false means that it is missing.
func getJSON(tx *bolt.Tx, key []byte, value any) (bool, error) {
	b, err := getState(tx, key)
	if err != nil || b == nil {
		return false, err
	}
	return true, json.Unmarshal(b, value)
}
