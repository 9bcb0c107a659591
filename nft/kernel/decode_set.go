package kernel

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/compile"
)

// decodeSet decodes a NEWSET; nil for a set of another table.
func decodeSet(m reply, table string) (*compile.Set, error) {
	set := &compile.Set{}
	a := parseAttrs(m.attrs)
	for a.next() {
		switch a.typ {
		case unix.NFTA_SET_TABLE:
			if string(trimNUL(a.value)) != table {
				return nil, nil //nolint:nilnil // nothing of a foreign table is decoded
			}
		case unix.NFTA_SET_NAME:
			set.Name = a.string()
		case unix.NFTA_SET_FLAGS:
			set.Flags = a.uint32()
		case unix.NFTA_SET_KEY_TYPE:
			set.Key.ID = a.uint32()
		case unix.NFTA_SET_KEY_LEN:
			set.Key.Len = a.uint32()
		case unix.NFTA_SET_DATA_TYPE:
			set.Data.ID = a.uint32()
		case unix.NFTA_SET_DATA_LEN:
			set.Data.Len = a.uint32()
		case unix.NFTA_SET_OBJ_TYPE:
			set.Object = compile.ObjectKindOf(a.uint32())
		case unix.NFTA_SET_TIMEOUT:
			set.Timeout = durationOf(a.uint64())
		case unix.NFTA_SET_GC_INTERVAL:
			set.GCInterval = durationOf(uint64(a.uint32()))
		case unix.NFTA_SET_POLICY:
			set.Memory = a.uint32() == unix.NFT_SET_POL_MEMORY
		case unix.NFTA_SET_DESC:
			if err := decodeDesc(a.value, set); err != nil {
				return nil, fmt.Errorf("set %s: description: %w", set.Name, err)
			}
		case nftaSetExpr:
			words, err := compile.FormatStateful(a.value)
			if err != nil {
				return nil, fmt.Errorf("set %s: %w", set.Name, err)
			}
			set.Stateful = []string{words}
		case nftaSetExpressions:
			var err error
			if set.Stateful, err = decodeStateful(a.value); err != nil {
				return nil, fmt.Errorf("set %s: %w", set.Name, err)
			}
		case unix.NFTA_SET_USERDATA:
			set.UserData = append([]byte(nil), a.value...)
		}
	}
	if err := a.err(); err != nil {
		return nil, fmt.Errorf("set %s: %w", set.Name, err)
	}
	set.Complete()
	return set, nil
}

// durationOf converts milliseconds, keeping to what a duration can hold.
func durationOf(ms uint64) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	return time.Duration(min(ms, most)) * time.Millisecond
}

// decodeDesc decodes the size and the lengths of a concatenation's parts.
func decodeDesc(b []byte, set *compile.Set) error {
	a := parseAttrs(b)
	for a.next() {
		switch a.typ {
		case unix.NFTA_SET_DESC_SIZE:
			set.Size = a.uint32()
		case nftaSetDescConcat:
			fields := parseAttrs(a.value)
			for fields.next() {
				field := parseAttrs(fields.value)
				for field.next() {
					if field.typ == nftaSetFieldLen {
						set.Key.Fields = append(set.Key.Fields, field.uint32())
					}
				}
				if err := field.err(); err != nil {
					return err
				}
			}
			if err := fields.err(); err != nil {
				return err
			}
		}
	}
	return a.err()
}
