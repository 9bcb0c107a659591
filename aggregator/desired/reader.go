package desired

// Reader selects visible content. The zero value sees no content.
type Reader struct {
	Publisher string
	// All sees all content, also without a fragment.
	All bool
}

// Sees reports whether a publisher's fragments are seen.
func (r Reader) Sees(publisher string) bool {
	return r.All || publisher != "" && publisher == r.Publisher
}
