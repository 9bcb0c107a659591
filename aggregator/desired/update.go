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

func CompareTables(a, b nft.TableID) int {
	return cmp.Or(cmp.Compare(a.Family, b.Family), strings.Compare(a.Name, b.Name))
}

// Key names a fragment.
type Key struct{ Publisher, Name string }

// String returns "publisher/name".
func (k Key) String() string { return k.Publisher + "/" + k.Name }

// Compare orders keys by publisher and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Publisher, other.Publisher), cmp.Compare(k.Name, other.Name))
}

// Update is one change of one fragment, compiled. Updates are immutable. Package
// admission makes sure that they are complete: declarations have names, none is made
// twice, and no rule is nil.
type Update struct {
	Fragment Key
	// Snapshot replaces everything that the fragment holds by Tables. Priority
	// takes effect with a snapshot. A snapshot without tables withdraws the
	// fragment.
	Snapshot bool
	Priority int32
	// Lifetime, like Priority, takes effect with a snapshot.
	Lifetime Lifetime
	// Expires is when the fragment is to be withdrawn; zero means never. Like Priority,
	// it takes effect with a snapshot. Its location is UTC, and it has no monotonic clock
	// reading.
	Expires time.Time
	// Session identifies the stream that sends the update, and Serial counts the
	// updates of that stream. They are 0 if the update comes from no stream.
	// Status returns those of the last snapshot.
	Session, Serial uint64
	Tables          []TableUpdate
}

// TableUpdate is the part of an update in one table.
type TableUpdate struct {
	Table nft.TableID
	// Comment is given to the table when it is created; the kernel cannot
	// change it later.
	Comment string
	// Dormant says that the table's base chains are off their hooks while the
	// fragment holds something in the table. Only a snapshot changes it.
	Dormant bool
	// PutObjects and PutFlowtables declare objects and flowtables, DeleteObjects and
	// DeleteFlowtables name those that the fragment gives up.
	PutObjects       []*nftobject.Object
	DeleteObjects    []nftobject.Ref
	PutFlowtables    []*nftobject.Flowtable
	DeleteFlowtables []string
	// PutChains and PutSets declare or replace objects with all that the
	// fragment holds in them.
	PutChains []Chain
	// DeleteChains and DeleteSets name objects that the fragment gives up. All
	// deletions of an update, those of objects and flowtables included, are done
	// before its declarations. Names that the fragment does not hold are passed over.
	DeleteChains []string
	PutSets      []Set
	DeleteSets   []string
	// Elements change objects that the fragment has declared. They are done
	// last.
	Elements []Elements
	// Uses are the sets and maps outside of this update that its rules refer to, by
	// name, as they were declared when the rules were compiled. If the table has another one, Apply returns ErrStale.
	Uses map[string]*nftset.Set
}

// Chain is a fragment's share of a chain.
type Chain struct {
	Decl *nftobject.Chain
	// Source is the declaration as its publisher wrote it, without rules. It may
	// be nil.
	Source *nft.Chain
	Rules  []*compile.Rule
}

// Set is a fragment's share of a set or map. Of several elements with the
// same key the last counts.
type Set struct {
	Decl *nftset.Set
	// Source is the declaration as its publisher wrote it, without elements. It
	// may be nil.
	Source   *nft.Set
	Elements []nftset.Element
	// View has the elements, in place of Elements, in what Content returns.
	View *packed.View
	// Conntrack is true for a map whose UDP flows are flushed when a commit
	// changes where they go.
	Conntrack bool
	// Affinity is true for a dynamic map whose entries go once no rule makes
	// them any more.
	Affinity bool
}

// All returns the elements.
func (s *Set) All() iter.Seq[nftset.Element] {
	if s.View != nil {
		return s.View.Sorted()
	}
	return slices.Values(s.Elements)
}

// Elements is an update of elements: it changes a fragment's share of one set or map, first
// with the removals, then with the additions, which replace elements of the same key.
// Removing an element that the fragment does not hold changes nothing.
type Elements struct {
	Set string
	// Decl is the declaration that the elements were packed for. If it differs
	// from the fragment's own, Apply returns ErrStale; nil skips the check.
	Decl   *nftset.Set
	Remove []nftset.Element
	Add    []nftset.Element
}
