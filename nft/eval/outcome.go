package eval

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// Verdict is what happens to a packet in the end.
type Verdict int

// The verdicts.
const (
	// Accept means that the packet leaves the node, or reaches the node's own sockets.
	Accept Verdict = iota
	// Drop means that a rule, a policy or the kernel drops the packet. A reject is a Drop.
	Drop
	// Undecided means that the evaluation ended early, for the reason in Outcome.Reason.
	Undecided
)

// String returns the verdict as a lower-case word.
func (v Verdict) String() string {
	if v < Accept || v > Undecided {
		return "unknown"
	}
	return [...]string{"accept", "drop", "undecided"}[v]
}

// Outcome is one possible way of a packet.
type Outcome struct {
	Verdict Verdict
	// Reason says why the verdict is Undecided, or why the kernel drops the packet if no rule
	// or policy does.
	Reason string
	// Choices lead to this outcome, in order. Without choices it is the only one.
	Choices []Choice
	// Steps are the rules that matched, and the policies at the ends of base chains.
	Steps []Step
	// Packet is the packet as it continues: rewritten, with its mark and interfaces.
	Packet Packet
	// AnySourcePort is true if the kernel has chosen the source port, or the identifier of an echo, at random.
	// Packet has the one from before; rules that read the new one are Undecided.
	AnySourcePort bool
	// Traced is the first of the Steps that the kernel traces because nftrace is set, or
	// len(Steps).
	Traced int
}

// Choice is a result that the evaluator cannot know.
type Choice struct {
	// What is the expression, such as "numgen", and Result what it was assumed to be.
	What   string
	Result string
	// Probability is that of the result, 0 if it is not known.
	Probability float64
}

// Probability returns the probability of the outcome. ok is false if it is not known.
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
	// Rule is the handle of the rule, 0 for the policy.
	Rule uint64
	// Matched is the rule, nil for the policy. It is part of the Ruleset.
	Matched *Rule
	// Verdict is what the rule or the policy decided. It is to continue for a rule
	// without a verdict.
	Verdict set.Verdict
	// Lookups are the sets and maps that the rule consulted.
	Lookups []Lookup
}

// Lookup is a search in a set or map.
type Lookup struct {
	// Set is the name of the set. It is that of the declaration for an anonymous set.
	Set string
	// Key is the packed key.
	Key string
	// Element is the element that was found, if Found is true.
	Element set.Element
	Found   bool
}
