package set

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
)

// unlistable says why nft 1.0.6 cannot list a set or map, or rules with it.
func (d *declaration) unlistable() error {
	for i, p := range slices.Concat(d.key, d.data) {
		switch {
		case p.Type == datatype.CTLabel:
			return fmt.Errorf("%s %q: nft cannot list sets of %s", d.word, d.text, p.Type.Name)
		case i >= len(d.keyExprs)+len(d.dataExprs):
		case slices.Concat(d.keyExprs, d.dataExprs)[i].jenkins():
			return fmt.Errorf("%s %q: nft crashes when it lists a set of the type of jhash: write symhash or numgen, whose type is the same", d.word, d.text)
		}
	}
	return nil
}

func (e TypeOfExpr) jenkins() bool {
	return e.expr == exprHash && len(e.attrs) > 0 && e.attrs[0].value == unix.NFT_HASH_JENKINS
}

// AdjacentWildcards reports adjacent keys. nft merges such wildcards into a range, which it cannot
// list.
func AdjacentWildcards(elems []Element) bool {
	sorted := slices.SortedFunc(slices.Values(elems), func(a, b Element) int { return strings.Compare(a.Key, b.Key) })
	for i := 1; i < len(sorted); i++ {
		if end := sorted[i-1].KeyEnd; end != "" && touches(end, sorted[i].Key) {
			return true
		}
	}
	return false
}

// SeveralFlags reports whether the bytes [at, at+size) of an element's key have more than one bit
// set, or differ from KeyEnd's.
func SeveralFlags(elems []Element, at, size int) bool {
	for _, e := range elems {
		if e.Key == "" {
			continue
		}
		n := 0
		for _, b := range []byte(e.Key[at : at+size]) {
			n += bits.OnesCount8(b)
		}
		if n > 1 || e.KeyEnd != "" && e.KeyEnd[at:at+size] != e.Key[at:at+size] {
			return true
		}
	}
	return false
}
