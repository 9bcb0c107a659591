package access

import "fmt"

// Accept names publishers with honoured accepts: packets that their rules accept pass the base
// chains of the publisher with the Accept.
type Accept struct {
	Publishers []string `json:"publishers" text:"name"`
	// the bit of the packet mark for accepted packets
	Mark uint32 `json:"mark"`
}

// String returns the Accept for people.
func (a *Accept) String() string {
	if a == nil {
		return "none"
	}
	return fmt.Sprintf("%s, by mark %#x", join(a.Publishers), a.Mark)
}
