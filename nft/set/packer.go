package set

import (
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// Packer packs a batch's elements. Elements share strings to save allocations, so one kept element
// keeps many. A Packer belongs to one goroutine.
type Packer struct {
	set  *Set
	text strings.Builder
}

const packerText = 16 << 10

// Packer returns a packer for about as many elements.
func (s *Set) Packer(elements int) *Packer {
	p := &Packer{set: s}
	p.text.Grow(min(elements*int(2*s.Key.Len+s.Data.Len), packerText))
	return p
}

// Pack is Set.Pack.
func (p *Packer) Pack(e nft.Element) (Element, error) {
	var buf [maxPacked]byte
	b, keys, err := p.set.pack(buf[:0], e)
	if err != nil {
		return Element{}, err
	}
	// a full Builder would copy its contents
	if p.text.Cap()-p.text.Len() < len(b) {
		p.text = strings.Builder{}
		p.text.Grow(max(packerText, len(b)))
	}
	at := p.text.Len()
	p.text.Write(b)
	return p.set.element(p.text.String()[at:], keys, e)
}
