package packed

import (
	"slices"
	"strings"
	"time"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// ID returns the identity of an element: the key, in interval sets followed by the end of the
// interval.
func ID(d *nftset.Set, e *nftset.Element) string {
	if d.Flags&nftset.FlagInterval == 0 {
		return e.Key
	}
	if e.KeyEnd == "" {
		return e.Key + e.Key
	}
	return e.Key + e.KeyEnd
}

// Jiffy is the greatest error of a dumped timeout (HZ=100).
const Jiffy = 10 * time.Millisecond

// Same reports whether the kernel's a can stay for b. Both have the same ID.
func Same(d *nftset.Set, a, b *nftset.Element) bool {
	if a.Data != b.Data || a.Comment != b.Comment || a.State != b.State && !sameStatements(d, a, b) {
		return false
	}
	if a.Timeout == b.Timeout {
		return true
	}
	diff := Timeout(d, a) - Timeout(d, b)
	return -Jiffy < diff && diff < Jiffy
}

// sameStatements ignores counted state and the rest of the timeout, which are only a start. Without
// statements an element has the set's.
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

func stateless(statement string) string {
	if strings.HasPrefix(statement, "counter") {
		return "counter"
	}
	text, _, _ := strings.Cut(statement, " used ")
	return text
}

func Timeout(d *nftset.Set, e *nftset.Element) time.Duration {
	if e.Timeout != 0 {
		return e.Timeout
	}
	return d.Timeout
}

// Dynamic reports whether packets add elements to the set.
func Dynamic(d *nftset.Set) bool { return d.Flags&nftset.FlagEval != 0 }

// HasTargets reports whether a map's elements lead to chains or named objects.
func HasTargets(d *nftset.Set) bool { return d.Verdict || d.Object != "" }
