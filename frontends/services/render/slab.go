package render

import weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"

const (
	// slabSize is the number of elements that a patch allocates at once.
	slabSize = 8
	// slabText is the minimum of bytes of text that share an allocation, if there are so
	// many.
	slabText = 1 << 15
)

// slab allocates many elements at once, and their texts. They have no texts until seal is
// called.
type slab struct {
	free []weftv1.Element
	text []byte
	cuts []cut
}

// cut has the ends of an element's texts. They begin at the end of the previous ones.
type cut struct {
	element             *weftv1.Element
	key, value, comment int32
}

func (s *slab) element(key, value, comment []byte) *weftv1.Element {
	if len(s.free) == 0 {
		s.free = make([]weftv1.Element, slabSize)
	}
	c := cut{element: &s.free[0]}
	s.free = s.free[1:]
	s.text = append(s.text, key...)
	c.key = int32(len(s.text))
	s.text = append(s.text, value...)
	c.value = int32(len(s.text))
	s.text = append(s.text, comment...)
	c.comment = int32(len(s.text))
	s.cuts = append(s.cuts, c)
	if len(s.text) >= slabText {
		s.seal()
	}
	return c.element
}

// seal sets the texts of all elements so far.
func (s *slab) seal() {
	text, from := string(s.text), int32(0)
	for _, c := range s.cuts {
		c.element.Key, c.element.Value, c.element.Comment = text[from:c.key], text[c.key:c.value], text[c.value:c.comment]
		from = c.comment
	}
	s.text, s.cuts = s.text[:0], s.cuts[:0]
}
