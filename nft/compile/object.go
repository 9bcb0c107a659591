package compile

import "github.com/weft-proxy/weft/nft"

// ObjectRef names an object of a table.
type ObjectRef struct {
	Kind nft.ObjectKind
	Name string
}

// Object is a compiled named object.
type Object struct {
	Kind    nft.ObjectKind
	Name    string
	Comment string
	// Text is the declaration's body in canonical form, as in [nft.Object].
	Text string
	// Type is the kernel's number of the kind (NFT_OBJECT_COUNTER, ...).
	Type uint32
	// Data are the attributes of NFTA_OBJ_DATA as the kernel takes them.
	Data []byte
}

// Flowtable is a compiled flowtable.
type Flowtable struct {
	Name string
	// Hook is the kernel's hook number in the netdev family.
	Hook     uint32
	Priority int32
	Devices  []string
	// Flags are NFT_FLOWTABLE_*.
	Flags uint32
}
