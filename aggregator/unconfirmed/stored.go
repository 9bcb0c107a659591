package unconfirmed

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
)

// Kind is the kind of data for Store.Failed.
const Kind = "unconfirmed"

const (
	bucket    = "unconfirmed"
	updateKey = "update"
	beforeKey = "before"
)

type stored struct {
	// Boot is the kernel's boot_id, Deadline CLOCK_BOOTTIME in nanoseconds.
	Boot       string        `json:"boot"`
	Deadline   time.Duration `json:"deadline"`
	RevertTime time.Time     `json:"revertTime"`
}

// encode returns a nil before if there was no fragment.
func encode(e *entry) (update, before []byte, err error) {
	if e.before != nil {
		before, err = proto.MarshalOptions{}.MarshalAppend([]byte{}, e.before)
	}
	if err == nil {
		update, err = json.Marshal(stored{Boot: e.boot, Deadline: e.deadline, RevertTime: e.at})
	}
	return update, before, err
}

// write stores an entry. disk is held.
func (k *Keeper) write(key desired.Key, update, before []byte) error {
	if err := k.failing("write"); err != nil {
		return err
	}
	err := k.cfg.Store.Update(func(tx *store.Tx) error {
		all, err := tx.Bucket(bucket)
		if err != nil {
			return err
		}
		b, err := all.Obtain(key.String())
		if err != nil {
			return err
		}
		return errors.Join(b.Put(updateKey, update), b.Put(beforeKey, before))
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	e := k.entries[key]
	e.size, e.stored = len(update)+len(before), true
	k.mu.Unlock()
	return nil
}

// remove is called with disk held.
func (k *Keeper) remove(key desired.Key) error {
	if err := k.failing("remove"); err != nil {
		return err
	}
	return k.cfg.Store.Update(func(tx *store.Tx) error {
		all, err := tx.Bucket(bucket)
		if err != nil {
			return err
		}
		return all.DeleteBucket(key.String())
	})
}

// removeLeft removes ended entries.
func (k *Keeper) removeLeft() error {
	k.disk.Lock()
	defer k.disk.Unlock()
	k.mu.Lock()
	left := maps.Clone(k.entries)
	maps.DeleteFunc(left, func(_ desired.Key, e *entry) bool { return e.state != ended })
	k.mu.Unlock()
	var failed error
	for key := range left {
		if err := k.remove(key); err != nil {
			failed = err
			continue
		}
		k.mu.Lock()
		// A later update may have come.
		if k.active(key) == nil {
			delete(k.entries, key)
		}
		k.mu.Unlock()
	}
	return failed
}

// Load reads the entries. The Store has logged lost ones.
func (k *Keeper) Load() {
	if !k.Enabled() {
		return
	}
	err := k.cfg.Store.View(func(tx *store.Tx) error {
		all, err := tx.Bucket(bucket)
		if err != nil {
			return err
		}
		var errs []error
		for _, id := range all.Names() {
			publisher, name, _ := strings.Cut(id, "/")
			key := desired.Key{Publisher: publisher, Name: name}
			e, err := decode(all.Bucket(id))
			if err != nil {
				errs = append(errs, err)
				continue
			}
			k.cfg.Logger.Info("fragment is not confirmed", "fragment", key.String(), "revert_time", e.at)
			k.entries[key] = e
		}
		return errors.Join(errs...)
	})
	if err != nil {
		k.cfg.Store.Failed(Kind)
		k.cfg.Logger.Error("updates that were not confirmed stay", "error", err)
	}
}

func decode(b *store.Bucket) (*entry, error) {
	var s stored
	if err := json.Unmarshal(b.Get(updateKey), &s); err != nil {
		return nil, err
	}
	before := b.Get(beforeKey)
	e := &entry{state: waiting, stored: true, size: len(b.Get(updateKey)) + len(before), at: s.RevertTime, boot: s.Boot, deadline: s.Deadline, attempt: newAttempt()}
	if before == nil {
		return e, nil
	}
	e.before = &weftv1.Fragment{}
	return e, proto.Unmarshal(before, e.before)
}
