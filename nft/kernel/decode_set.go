package kernel

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// decodeSet decodes a NEWSET.
func decodeSet(m reply) (*set.Set, error) {
	set := &set.Set{}
	a := attr.NewReader(m.attrs)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_SET_NAME:
			set.Name = a.Text()
		case unix.NFTA_SET_FLAGS:
			set.Flags = a.Uint32BE()
		case unix.NFTA_SET_KEY_TYPE:
			set.Key.ID = a.Uint32BE()
		case unix.NFTA_SET_KEY_LEN:
			set.Key.Len = a.Uint32BE()
		case unix.NFTA_SET_DATA_TYPE:
			set.Data.ID = a.Uint32BE()
		case unix.NFTA_SET_DATA_LEN:
			set.Data.Len = a.Uint32BE()
		case unix.NFTA_SET_OBJ_TYPE:
			set.Object = object.KindOf(a.Uint32BE())
		case unix.NFTA_SET_TIMEOUT:
			set.Timeout = durationOf(a.Uint64BE())
		case unix.NFTA_SET_GC_INTERVAL:
			set.GCInterval = durationOf(uint64(a.Uint32BE()))
		case unix.NFTA_SET_POLICY:
			set.Memory = a.Uint32BE() == unix.NFT_SET_POL_MEMORY
		case unix.NFTA_SET_DESC:
			if err := decodeDesc(a.Nested(), set); err != nil {
				return nil, fmt.Errorf("set %s: description: %w", set.Name, err)
			}
		case nftaSetExpr:
			words, err := expr.FormatStateful(a.Bytes())
			if err != nil {
				return nil, fmt.Errorf("set %s: %w", set.Name, err)
			}
			set.Stateful = []string{words}
		case nftaSetExpressions:
			var err error
			if set.Stateful, err = decodeStateful(a.Nested()); err != nil {
				return nil, fmt.Errorf("set %s: %w", set.Name, err)
			}
		case unix.NFTA_SET_USERDATA:
			set.UserData = append([]byte(nil), a.Bytes()...)
		}
	}
	if err := a.Err(); err != nil {
		return nil, fmt.Errorf("set %s: %w", set.Name, err)
	}
	set.Complete()
	return set, nil
}

// durationOf converts milliseconds. Longer times become the greatest duration.
func durationOf(ms uint64) time.Duration {
	const longest = uint64(1<<63-1) / uint64(time.Millisecond)
	return time.Duration(min(ms, longest)) * time.Millisecond
}

// decodeDesc decodes the size and the lengths of a concatenation's fields.
func decodeDesc(a attr.Reader, set *set.Set) error {
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_SET_DESC_SIZE:
			set.Size = a.Uint32BE()
		case nftaSetDescConcat:
			fields := a.Nested()
			for fields.Next() {
				length, _ := attr.Find(fields.Bytes(), nftaSetFieldLen)
				set.Key.Fields = append(set.Key.Fields, length.Uint32BE())
				if err := length.Err(); err != nil {
					return err
				}
			}
			if err := fields.Err(); err != nil {
				return err
			}
		}
	}
	return a.Err()
}
