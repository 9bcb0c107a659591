package desired

import (
	"time"

	"github.com/weft-proxy/weft/nft"
)

// Record has the shares of fragments, which a dump does not tell, as JSON. Its size is that of the
// declarations and of elements with several fragments.
//
// Write it before its commit: a fragment that is in the kernel but not recorded loses its elements
// at a restart.
type Record struct {
	Fragments []FragmentRecord `json:"fragments,omitempty"`
}

type FragmentRecord struct {
	Publisher string        `json:"publisher"`
	Name      string        `json:"name"`
	Priority  int32         `json:"priority,omitempty"`
	Lifetime  string        `json:"lifetime,omitempty"`
	Expires   time.Time     `json:"expires,omitzero"`
	Tables    []TableRecord `json:"tables,omitempty"`
}

// TableRecord has a fragment's shares in a table.
type TableRecord struct {
	Family  string `json:"family"`
	Name    string `json:"name"`
	Comment string `json:"comment,omitempty"`
	Dormant bool   `json:"dormant,omitempty"`
	// Alone means that Dormant has no effect beside an awake fragment of another publisher.
	Alone   bool           `json:"alone,omitempty"`
	Chains  []ChainRecord  `json:"chains,omitempty"`
	Sets    []SetRecord    `json:"sets,omitempty"`
	Objects []ObjectRecord `json:"objects,omitempty"`
	// Owned are the parts with several fragments that the publisher owns: see merge.Apply.mayShare.
	Owned []ObjectRecord `json:"owned,omitempty"`
	// Apart is true if the shares are in Shares.
	Apart bool `json:"apart,omitempty"`
	// Shares has by kind and name each share that changed since merge.State.Recorded, or all if
	// Whole is true. A removed share is nil.
	Shares map[string]*TableRecord `json:"-"`
	Whole  bool                    `json:"-"`
}

func (r *TableRecord) Add(share *TableRecord) {
	r.Chains, r.Sets = append(r.Chains, share.Chains...), append(r.Sets, share.Sets...)
	r.Objects, r.Owned = append(r.Objects, share.Objects...), append(r.Owned, share.Owned...)
}

// ObjectRecord names a part: a named object, flowtable, chain or set (also a map).
type ObjectRecord struct {
	Kind nft.ObjectKind `json:"kind"`
	Name string         `json:"name"`
}

// ChainRecord is a share of a chain, with the rules' references.
type ChainRecord struct {
	Name    string         `json:"name"`
	Sets    []string       `json:"sets,omitempty"`
	Chains  []string       `json:"chains,omitempty"`
	Objects []ObjectRecord `json:"objects,omitempty"`
}

// SetRecord is a share of a set or map.
type SetRecord struct {
	Name      string `json:"name"`
	Conntrack bool   `json:"conntrack,omitempty"`
	Affinity  bool   `json:"affinity,omitempty"`
	// Wins are packed keys that several fragments state and this one decides: in a map all, in a
	// set only keys with different options. With more than 4,096 such keys, the set has no Wins.
	// They tell after a restart whose value the kernel has.
	Wins [][]byte `json:"wins,omitempty"`
}
