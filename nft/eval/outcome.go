package eval

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// Verdict is the final fate of a packet.
type Verdict int

// The verdicts.
const (
	// Accept means that the packet leaves the node, or reaches its sockets.
	Accept Verdict = iota
	// Drop includes a reject.
	Drop
	// Undecided has Outcome.Reason.
	Undecided
)

// String returns the verdict as a lower-case word.
func (v Verdict) String() string {
	if v < Accept || v > Undecided {
		return "unknown"
	}
	return [...]string{"accept", "drop", "undecided"}[v]
}

// Outcome is one possible path of a packet.
type Outcome struct {
	Verdict Verdict
	// of Undecided, or of a drop by the kernel without a rule or policy
	Reason string
	// in order; empty if the packet met no choice
	Choices []Choice
	Steps   []Step
	Packet  Packet
	// The kernel has chosen the source port, or the identifier of an echo; Packet has the original
	// one.
	AnySourcePort bool
	// first step traced by nftrace, or len(Steps)
	Traced int
}

// Choice is an assumed result.
type Choice struct {
	// such as "numgen"
	What   string
	Result string
	// 0 if unknown
	Probability float64
}

// Probability returns false for an unknown probability.
func (o *Outcome) Probability() (p float64, ok bool) {
	p = 1
	for _, c := range o.Choices {
		p *= c.Probability
	}
	return p, p > 0
}

// Step is a rule that matched, or the policy of a base chain.
type Step struct {
	Table nft.TableID
	Chain string
	Hook  uint32
	// 0 for a policy
	Rule uint64
	// nil for a policy
	Matched *Rule
	Verdict set.Verdict
	Lookups []Lookup
}

// Lookup is a search in a set or map.
type Lookup struct {
	// for an anonymous set as in its declaration
	Set     string
	Key     string
	Element set.Element
	Found   bool
}
