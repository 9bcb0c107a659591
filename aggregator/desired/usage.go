package desired

// Usage is how much a publisher holds, all its fragments together.
type Usage struct {
	Fragments, Chains, Rules, Sets, Elements int
	// Objects are named objects and flowtables.
	Objects int
	// Bytes are those of rule texts, packed elements, names and comments. An
	// adopted rule's text is not known, and counts nothing.
	Bytes int
	// LogRate is how many packets an hour the rules log at most. An adopted rule's rate is
	// not known, and counts nothing.
	LogRate int
	// BaseChains are those of Chains that have a hook.
	BaseChains int
	// Anonymous counts the elements of the anonymous sets and maps of rules. They are not
	// in Elements. Those of adopted rules are not known.
	Anonymous int
	// Memory is about how much memory of the kernel it takes, in bytes: see package cost.
	Memory int
}

func (u *Usage) Add(o Usage, by int) {
	u.Fragments += by * o.Fragments
	u.Chains += by * o.Chains
	u.Rules += by * o.Rules
	u.Sets += by * o.Sets
	u.Objects += by * o.Objects
	u.Elements += by * o.Elements
	u.Bytes += by * o.Bytes
	u.LogRate += by * o.LogRate
	u.BaseChains += by * o.BaseChains
	u.Anonymous += by * o.Anonymous
	u.Memory += by * o.Memory
}

// The most that one fragment holds, whether it comes as one snapshot or grows by patches: a
// snapshot can always send again what patches have reached.
const (
	MaxTables   = 64
	MaxChains   = 1_000_000
	MaxSets     = 1_000_000
	MaxObjects  = 1_000_000
	MaxRules    = 4_000_000
	MaxElements = 8_000_000
)
