package desired

import (
	"fmt"
	"slices"
)

// Lifetime says when a fragment is withdrawn without an update, by numbers of weft.proto.
type Lifetime int32

const (
	// LifetimeUnspecified means LifetimeSticky.
	LifetimeUnspecified Lifetime = 0
	// LifetimeSticky keeps the fragment when its publisher or the aggregator restarts.
	LifetimeSticky Lifetime = 1
	// LifetimeSession withdraws the fragment when its session ends.
	LifetimeSession Lifetime = 2
	// LifetimeDurable stores the fragment, to commit it after a reboot.
	LifetimeDurable Lifetime = 3
)

var lifetimeNames = [...]string{"", "sticky", "session", "durable"}

func (l Lifetime) String() string {
	if l < 0 || int(l) >= len(lifetimeNames) {
		return fmt.Sprintf("lifetime(%d)", int32(l))
	}
	return lifetimeNames[l]
}

// ParseLifetime is the inverse of String. An unknown name means sticky.
func ParseLifetime(name string) Lifetime {
	if i := slices.Index(lifetimeNames[:], name); i >= 0 {
		return Lifetime(i) //nolint:gosec // less than the length of the table
	}
	return LifetimeSticky
}
