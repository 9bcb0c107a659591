package syntax

import "github.com/weft-proxy/weft/nft"

// Quota matches until an amount of bytes has passed, or from there on when Over
// is set.
type Quota struct {
	Pos
	Over bool
	// Bytes is in Unit, Used in UsedUnit: bytes, kbytes or mbytes. UsedUnit is
	// empty when nothing was said of what has passed already.
	Bytes    uint64
	Unit     string
	Used     uint64
	UsedUnit string
}

// ConnLimit matches up to a number of connections, or above it when Over is
// set: "ct count over 10".
type ConnLimit struct {
	Pos
	Over  bool
	Count uint32
}

// ObjectRef uses a named object: "counter name x", "ct helper set x".
type ObjectRef struct {
	Pos
	Kind nft.ObjectKind
	// Ref is the name, a Const, or a Map of keys to names.
	Ref Expr
}

func (*Quota) stmt()     {}
func (*ConnLimit) stmt() {}
func (*ObjectRef) stmt() {}
