package desired

type Usage struct {
	Fragments, Chains, Rules, Sets, Elements int
	Objects                                  int
	// Bytes are for rule texts, packed elements, names and comments. Adopted rules count 0 here and
	// in LogRate, Anonymous and Memory.
	Bytes int
	// LogRate bounds logged packets an hour.
	LogRate    int
	BaseChains int
	// Anonymous counts elements of anonymous sets and maps, not in Elements.
	Anonymous int
	// Memory estimates the kernel's bytes: see package cost.
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

// The bounds of a fragment hold for snapshots and patches: a snapshot can always repeat the
// content.
const (
	MaxTables   = 64
	MaxChains   = 1_000_000
	MaxSets     = 1_000_000
	MaxObjects  = 1_000_000
	MaxRules    = 4_000_000
	MaxElements = 8_000_000
)
