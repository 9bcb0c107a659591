package selector

import (
	"github.com/weft-proxy/weft/nft/datatype"
)

// HostKey is a key of an rt, socket or xfrm expression.
type HostKey struct {
	name string
	// l3 is ip or ip6 for the keys that are addresses of one of them.
	l3  string
	Key uint32
	// dump is libnftnl's name.
	dump  string
	Type  *datatype.Type
	Bits  uint32
	Order datatype.Order
	// Flag is true for numbers that are 0 or 1.
	Flag bool
}

// HostDumpName returns libnftnl's name of a kernel key.
func HostDumpName(keys []HostKey, key uint32) string {
	for i := range keys {
		if keys[i].Key == key {
			return keys[i].dump
		}
	}
	return "unknown"
}
