package desired

// Effect is the effect of an update on packets and hooks.
type Effect struct {
	// Hook is the fullest hook to which the update adds base chains, HookChains its number of base
	// chains, or 0.
	Hook       string
	HookChains int
	// Path is the most expensive way that the update makes more expensive. Time is 0 without such a
	// way.
	Path Path
	// Every is the same for the least time, which every packet takes.
	Every Path
}

// Path is the most expensive way of a packet through one hook.
type Path struct {
	Chain Place
	Hook  string
	// Chains names Chain and the most expensive targets. Call it before the state changes, for
	// messages only: it looks at all elements of verdict maps.
	Chains func() []string
	// Time is in nanoseconds for all base chains of the publisher, ChainTime for Chain.
	Time, ChainTime int
}

// Grant returns why a publisher may not share, or refer to, a part that owner declared first, or
// nil. A place without a kind is the flag dormant of a table; owner may then be empty, for any
// publisher.
type Grant func(publisher, owner string, at Place) error

// Limit returns why an update may not change a publisher's usage, or nil.
type Limit func(before, after Usage, effect Effect) error
