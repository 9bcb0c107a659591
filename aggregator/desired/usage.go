package desired

// Usage is how much a publisher holds, all its fragments together.
type Usage struct {
	Fragments, Chains, Rules, Sets, Elements int
	// Objects are named objects and flowtables.
	Objects int
	// Bytes are those of rule texts, packed elements, names and comments. Adopted rules count 0
	// here and in LogRate.
	Bytes int
	// LogRate bounds the packets an hour that the rules log.
	LogRate int
	// BaseChains are the Chains with a hook.
	BaseChains int
	// Anonymous counts the elements of anonymous sets and maps, without adopted rules. Elements
	// excludes them.
	Anonymous int
	// Memory estimates the kernel's memory in bytes: see package cost.
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

// The bounds of one fragment, by snapshot or by patches: a snapshot can always repeat the content.
const (
	MaxTables   = 64
	MaxChains   = 1_000_000
	MaxSets     = 1_000_000
	MaxObjects  = 1_000_000
	MaxRules    = 4_000_000
	MaxElements = 8_000_000
)
