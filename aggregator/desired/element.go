package desired

import (
	"slices"
	"strings"
	"time"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// elementID returns the identity of an element in its set: the key, and in
// interval sets also the end of the interval.
func elementID(d *nftset.Set, e *nftset.Element) string {
	if d.Flags&nftset.FlagInterval == 0 {
		return e.Key
	}
	if e.KeyEnd == "" {
		return e.Key + e.Key
	}
	return e.Key + e.KeyEnd
}

// jiffy is the coarsest grain in which a kernel keeps timeouts (HZ=100): a
// dumped one can be off by that much.
const jiffy = 10 * time.Millisecond

// sameElement reports whether the kernel's element a can stay where b is
// wanted. Both have the same ID.
func sameElement(d *nftset.Set, a, b *nftset.Element) bool {
	if a.Data != b.Data || a.Comment != b.Comment || a.State != b.State && !sameStatements(d, a, b) {
		return false
	}
	if a.Timeout == b.Timeout {
		return true
	}
	diff := timeout(d, a) - timeout(d, b)
	return -jiffy < diff && diff < jiffy
}

// sameStatements reports whether two elements have the same statements. The
// state that a statement has counted does not matter, because it is only the
// state that an element starts with. An element without statements has those of
// its set. The rest of the timeout does not matter either.
func sameStatements(d *nftset.Set, a, b *nftset.Element) bool {
	x, y := a.Stateful(), b.Stateful()
	if len(x) == 0 {
		x = d.Stateful
	}
	if len(y) == 0 {
		y = d.Stateful
	}
	return slices.EqualFunc(x, y, func(x, y string) bool { return stateless(x) == stateless(y) })
}

// stateless returns a statement without its state.
func stateless(statement string) string {
	if strings.HasPrefix(statement, "counter") {
		return "counter"
	}
	text, _, _ := strings.Cut(statement, " used ")
	return text
}

// timeout is an element's own timeout or else its set's.
func timeout(d *nftset.Set, e *nftset.Element) time.Duration {
	if e.Timeout != 0 {
		return e.Timeout
	}
	return d.Timeout
}

// dynamic reports whether packets put elements into the set.
func dynamic(d *nftset.Set) bool { return d.Flags&nftset.FlagEval != 0 }

// hasTargets reports whether a map's elements lead to objects of the table: chains, or
// named objects.
func hasTargets(d *nftset.Set) bool { return d.Verdict || d.Object != "" }

// leadsTo returns the chain or object that an element with the given data leads
// to. Its name is empty if the element leads to none. The data of a verdict are four
// bytes of code, then the name of a chain: see compile.VerdictData.
func leadsTo(d *nftset.Set, data string) objectID {
	switch {
	case d.Object != "":
		return objectID{Kind: d.Object, Name: data}
	case d.Verdict && len(data) > 4:
		return objectID{Kind: kindChain, Name: data[4:]}
	default:
		return objectID{}
	}
}
