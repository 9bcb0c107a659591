package render

import weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"

const (
	// slabSize is how many elements a patch allocates at once.
	slabSize = 8
	// slabText is how many bytes of text share an allocation, at least, where there
	// are so many.
	slabText = 1 << 15
)

// slab hands out elements, many of which come from one allocation, as do their
// texts. They have none until seal is called.
type slab struct {
	free []weftv1.Element
	text []byte
	cuts []cut
}

// cut says where the texts of an element end. They begin where those before end.
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

// seal gives all elements so far their texts.
func (s *slab) seal() {
	text, from := string(s.text), int32(0)
	for _, c := range s.cuts {
		c.element.Key, c.element.Value, c.element.Comment = text[from:c.key], text[c.key:c.value], text[c.value:c.comment]
		from = c.comment
	}
	s.text, s.cuts = s.text[:0], s.cuts[:0]
}
