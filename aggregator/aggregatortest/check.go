package aggregatortest

import (
	"github.com/weft-proxy/weft/nft/kernel"
)

// Check applies ops to a copy that is thrown away. Refuse and RefuseBatch apply, FailNext
// does not.
func (k *Kernel) Check(ops []kernel.Op) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, err := k.try(ops)
	return err
}

// try carries out all ops on a copy, or none. It is called with the lock held.
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
