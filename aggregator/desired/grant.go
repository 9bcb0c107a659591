package desired

// Effect is the effect of an update on packets and hooks.
type Effect struct {
	// Hook is the fullest hook to which the update adds base chains, HookChains the number of its
	// base chains. HookChains is 0 if it adds no base chain.
	Hook       string
	HookChains int
	// Path is the most expensive way of a packet that the update makes more expensive. Its Time is
	// 0 if there is no such way.
	Path Path
	// Every is the base chain with most of the time of every packet at a hook where the update adds
	// time. Its Time may be 0 too.
	Every Path
}

// Path is the most expensive way of a packet through the base chains of one hook.
type Path struct {
	// Chain is the most expensive base chain.
	Chain Place
	Hook  string
	// Chains returns the names of Chain and of the most expensive targets from there on. Call it
	// before the state changes, for messages only: it looks at all elements of verdict maps.
	Chains func() []string
	// Time is the time of a packet in nanoseconds in all base chains of the publisher at the hook,
	// ChainTime the part of Chain.
	Time, ChainTime int
}

// Grant returns why a publisher may not share, or refer to, a part of a table that owner declared
// first, or nil. A place without a kind stands for the flag dormant of a table in which owner has
// content.
type Grant func(publisher, owner string, at Place) error

// Limit returns why an update with an effect may not change a publisher's usage from before to
// after, or nil.
type Limit func(before, after Usage, effect Effect) error
