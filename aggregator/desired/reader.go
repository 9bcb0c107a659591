package desired

// Reader selects visible content. The zero value sees no content.
type Reader struct {
	Publisher string
	// All sees all content, also without a fragment.
	All bool
}

func (r Reader) Sees(publisher string) bool {
	return r.All || publisher != "" && publisher == r.Publisher
}
