package desired

import (
	"strings"
)

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

func (r Reader) sees(f *fragment) bool { return r.All || !f.unclaimed && r.Sees(f.key.Publisher) }

// seesOwner is sees for the fragment of a rule.
func (r Reader) seesOwner(owner string) bool {
	publisher, _, _ := strings.Cut(owner, "/")
	return r.Sees(publisher)
}
