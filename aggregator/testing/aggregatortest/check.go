package aggregatortest

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// Check applies ops to a temporary copy. Refuse and RefuseBatch apply, FailNext does not.
func (k *Kernel) Check(ops []kernel.Op) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, err := k.try(ops)
	return err
}

// The lock is held.
func (k *Kernel) try(ops []kernel.Op) (*batch, error) {
	if k.RefuseBatch != nil {
		if err := k.RefuseBatch(ops); err != nil {
			return nil, err
		}
	}
	b := &batch{tables: clone(k.tables), handles: k.handles, assigned: map[*kernel.Handle]uint64{}}
	for i, op := range ops {
		errno, text := b.do(op)
		if errno == 0 && k.Refuse != nil {
			errno, text = k.Refuse(op)
		}
		if errno != 0 {
			return nil, &kernel.BatchError{Index: i, Element: -1, Op: op, Errno: errno, ExtAck: text}
		}
	}
	return b, nil
}

// Owner is false: Flush changes the tables from outside.
func (k *Kernel) Owner() bool { return false }

// Unprotected is false without an owner.
func (k *Kernel) Unprotected() bool { return false }

// DumpLive returns an empty Live.
func (k *Kernel) DumpLive(nft.TableID, kernel.LiveQuery) (*kernel.Live, error) {
	return &kernel.Live{}, nil
}
