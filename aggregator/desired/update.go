package desired

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// ParseKey is the inverse of Key.String: a fragment's name has no slash.
func ParseKey(owner string) (Key, bool) {
	i := strings.LastIndexByte(owner, '/')
	if i <= 0 || i == len(owner)-1 {
		return Key{}, false
	}
	return Key{Publisher: owner[:i], Name: owner[i+1:]}, true
}

// CompareTables orders tables by family and name.
func CompareTables(a, b nft.TableID) int {
	return cmp.Or(cmp.Compare(a.Family, b.Family), strings.Compare(a.Name, b.Name))
}

// Key names a fragment.
type Key struct{ Publisher, Name string }

// String returns "publisher/name".
func (k Key) String() string { return k.Publisher + "/" + k.Name }

func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Publisher, other.Publisher), cmp.Compare(k.Name, other.Name))
}

// Update is a compiled, immutable change of a fragment. Package admission ensures unique names, and
// no nil rule.
type Update struct {
	Fragment Key
	// Snapshot replaces the whole fragment by Tables; without tables it withdraws the fragment.
	// Priority, Lifetime and Expires need a snapshot.
	Snapshot bool
	Priority int32
	Lifetime Lifetime
	// Expires is zero for never. It is in UTC, without monotonic clock reading.
	Expires time.Time
	// Serial counts the updates of the stream Session. Both are 0 without a stream.
	Session, Serial uint64
	Tables          []TableUpdate
}

// TableUpdate is the part of an update in a table.
type TableUpdate struct {
	Table nft.TableID
	// Comment is for a new table: the kernel cannot change it later.
	Comment string
	// Dormant takes the table's base chains off their hooks while the fragment has content there.
	// Only a snapshot changes it.
	Dormant          bool
	PutObjects       []*nftobject.Object
	DeleteObjects    []nftobject.Ref
	PutFlowtables    []*nftobject.Flowtable
	DeleteFlowtables []string
	// PutChains and PutSets replace whole shares.
	PutChains []Chain
	// All deletions come before declarations, and ignore unknown names.
	DeleteChains []string
	PutSets      []Set
	DeleteSets   []string
	// Elements come last.
	Elements []Elements
	// Uses are the sets and maps outside of this update that its rules refer to, as compiled. If
	// the table has another declaration, Apply returns ErrStale.
	Uses map[string]*nftset.Set
}

// Chain is a share of a chain.
type Chain struct {
	Decl *nftobject.Chain
	// Source is without rules, or nil.
	Source *nft.Chain
	Rules  []*compile.Rule
}

// Set is a share of a set or map. Of equal keys the last counts.
type Set struct {
	Decl *nftset.Set
	// Source is without elements, or nil.
	Source   *nft.Set
	Elements []nftset.Element
	// View replaces Elements in views.Content.
	View *packed.View
	// Conntrack marks a map with UDP flows to flush when their destinations change.
	Conntrack bool
	// Affinity marks a dynamic map: its entries go with the last rule that makes them.
	Affinity bool
}

func (s *Set) All() iter.Seq[nftset.Element] {
	if s.View != nil {
		return s.View.Sorted()
	}
	return slices.Values(s.Elements)
}

// Elements changes a share of a set or map: removals, which ignore missing keys, then additions,
// which replace equal keys.
type Elements struct {
	Set string
	// Decl is the declaration for which the elements are packed. If the fragment's share has
	// another, Apply returns ErrStale; nil skips the check.
	Decl   *nftset.Set
	Remove []nftset.Element
	Add    []nftset.Element
}
