package desired

// Reader says whose content a reader sees. The zero value sees nothing.
type Reader struct {
	// Publisher is the publisher whose fragments are seen.
	Publisher string
	// All is true if those of all publishers are seen, and content without a fragment.
	All bool
}

// Sees reports whether the fragments of a publisher are seen.
func (r Reader) Sees(publisher string) bool {
	return r.All || publisher != "" && publisher == r.Publisher
}
