package render

import weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"

const (
	arenaElements = 8
	// bytes
	arenaText = 1 << 15
)

// arena allocates many elements at once. Their texts are empty until seal.
type arena struct {
	free []weftv1.Element
	text []byte
	ends []elementEnds
}

// Each text begins at the previous end.
type elementEnds struct {
	element             *weftv1.Element
	key, value, comment int32
}

func (a *arena) element(key, value, comment []byte) *weftv1.Element {
	if len(a.free) == 0 {
		a.free = make([]weftv1.Element, arenaElements)
	}
	c := elementEnds{element: &a.free[0]}
	a.free = a.free[1:]
	a.text = append(a.text, key...)
	c.key = int32(len(a.text))
	a.text = append(a.text, value...)
	c.value = int32(len(a.text))
	a.text = append(a.text, comment...)
	c.comment = int32(len(a.text))
	a.ends = append(a.ends, c)
	if len(a.text) >= arenaText {
		a.seal()
	}
	return c.element
}

func (a *arena) seal() {
	text, from := string(a.text), int32(0)
	for _, c := range a.ends {
		c.element.Key, c.element.Value, c.element.Comment = text[from:c.key], text[c.key:c.value], text[c.value:c.comment]
		from = c.comment
	}
	a.text, a.ends = a.text[:0], a.ends[:0]
}
