package access

import "fmt"

// Accept names publishers with honoured accepts: packets accepted by their rules pass the base
// chains of the publisher with the Accept.
type Accept struct {
	Publishers []string `json:"publishers" text:"name"`
	// the bit of the packet mark
	Mark uint32 `json:"mark"`
}

// String returns the Accept for people.
func (a *Accept) String() string {
	if a == nil {
		return "none"
	}
	return fmt.Sprintf("%s, by mark %#x", join(a.Publishers), a.Mark)
}
