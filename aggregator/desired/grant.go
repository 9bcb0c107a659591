package desired

// Effect is what an update does to packets and hooks.
type Effect struct {
	// Hook is the hook with the most base chains to which the update adds one or more, and
	// HookChains their number. HookChains is 0 if it adds none.
	Hook       string
	HookChains int
	// Path is the most expensive way of a packet that the update makes more expensive.
	// Path.Time is 0 if there is none.
	Path Path
	// Every is the base chain that takes most of the time of every packet at a hook where the
	// update makes that longer. Its Time is 0 if there is none.
	Every Path
}

// Path is the most expensive way of a packet through the base chains of one hook.
type Path struct {
	// Chain is the most expensive base chain.
	Chain Place
	// Hook is the name of its hook.
	Hook string
	// Chains returns the names of Chain and of the most expensive chain that each sends the
	// packet to. It must be called before the state changes, and looks at all elements of
	// verdict maps: it is for messages.
	Chains func() []string
	// Time is what the packet pays in nanoseconds in all base chains of the publisher at the
	// hook, ChainTime the part of it that Chain has.
	Time, ChainTime int
}

// Grant returns why a publisher may not add to a part of a table, or refer to it,
// although owner declared it first; nil if the publisher was granted that. For a place
// without a kind it is about the flag dormant of a table in which owner has something.
type Grant func(publisher, owner string, at Place) error

// Limit returns why a publisher that holds before must not come to hold after with an
// update that has an effect, or nil.
type Limit func(before, after Usage, effect Effect) error
