package compile

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// Scope is what a rule can refer to besides itself: the declarations of its
// table.
type Scope interface {
	// Set returns the named set or map.
	Set(name string) (*set.Set, bool)
	// Chain reports whether a chain of that name can be a target of jump and
	// goto. A scope that checks references elsewhere answers true.
	Chain(name string) bool
	// Object reports whether there is a named object that a rule can refer to. A
	// scope that checks references elsewhere answers true.
	Object(kind nft.ObjectKind, name string) bool
	// Flowtable is Object for flowtables.
	Flowtable(name string) bool
}
