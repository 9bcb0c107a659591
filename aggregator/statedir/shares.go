package statedir

import (
	"bytes"
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
)

// apart calls visit with each table whose shares are apart from the record, and the key of its
// bucket.
func apart(r *desired.Record, visit func(id string, t *desired.TableRecord) error) error {
	for _, f := range r.Fragments {
		for i := range f.Tables {
			t := &f.Tables[i]
			if !t.Apart {
				continue
			}
			if err := visit(fmt.Sprintf("%s/%s %s %s", f.Publisher, f.Name, t.Family, t.Name), t); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasShares reports whether a record has changed shares that are apart from it.
func hasShares(r *desired.Record) (has bool) {
	_ = apart(r, func(_ string, t *desired.TableRecord) error {
		has = has || t.Whole || len(t.Shares) > 0
		return nil
	})
	return has
}

// putShares stores the changed shares that are apart from a record, and removes those of tables
// that it does not have.
func putShares(tx *bolt.Tx, r *desired.Record) error {
	b, err := tx.CreateBucketIfNotExists(sharesBucket)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	err = apart(r, func(id string, t *desired.TableRecord) error {
		known[id] = true
		if err := putTable(b, []byte(id), t); err != nil {
			return fmt.Errorf("shares of %s: %w", id, err)
		}
		return putVersion(tx, apartVersion)
	})
	if err != nil {
		return err
	}
	var gone [][]byte
	err = b.ForEachBucket(func(id []byte) error {
		if !known[string(id)] {
			gone = append(gone, bytes.Clone(id))
		}
		return nil
	})
	for _, id := range gone {
		if err == nil {
			err = b.DeleteBucket(id)
		}
	}
	return err
}

// putTable stores the changed shares of one table.
func putTable(b *bolt.Bucket, id []byte, t *desired.TableRecord) error {
	if t.Whole && b.Bucket(id) != nil {
		if err := b.DeleteBucket(id); err != nil {
			return err
		}
	}
	if _, err := b.CreateBucketIfNotExists(id); err != nil {
		return err
	}
	w := store.Load(b, id)
	for key, share := range t.Shares {
		var text []byte
		if share != nil {
			var err error
			if text, err = json.Marshal(share); err != nil {
				return err
			}
		}
		w.Set(key, text)
	}
	return w.Finish()
}

// readShares adds the shares that are apart from a record to it.
//
// Possible errors: store.ErrDamaged.
func readShares(tx *bolt.Tx, r *desired.Record) error {
	return apart(r, func(id string, t *desired.TableRecord) error {
		b := tx.Bucket(sharesBucket)
		if b == nil || b.Bucket([]byte(id)) == nil {
			return fmt.Errorf("%w: shares of %s are missing", store.ErrDamaged, id)
		}
		t.Apart = false
		return store.Load(b, []byte(id)).Each(func(_ string, text []byte) error {
			var share desired.TableRecord
			if err := json.Unmarshal(text, &share); err != nil {
				return fmt.Errorf("%w: shares of %s: %w", store.ErrDamaged, id, err)
			}
			t.Add(&share)
			return nil
		})
	})
}
