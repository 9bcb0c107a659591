package explain

import (
	"net/netip"
)

// Answer is what happens to a packet.
type Answer struct {
	// Sentence is the answer in short: of a packet that does not arrive the cause, then the remedy. It has no full
	// stop.
	Sentence string `json:"answer"`
	// By is the rule that ends the packet, empty if none does.
	By     string `json:"by,omitempty"`
	Packet Packet `json:"packet"`
	// Service is the one whose address and port the packet has, nil if it is none's.
	Service *Service `json:"service,omitempty"`
	// Ways are what can happen, the most probable first.
	Ways []Way `json:"ways"`
	// Incomplete is true if there are more ways than the evaluator lists.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Packet is the packet that was asked about, the first of its connection.
type Packet struct {
	Protocol string         `json:"protocol"`
	From     netip.AddrPort `json:"from"`
	To       netip.AddrPort `json:"to"`
	// FromName and ToName are "this node", or the name of a pod or a Service.
	FromName string `json:"fromName,omitempty"`
	ToName   string `json:"toName,omitempty"`
	// In is the interface through which it comes in; empty for a packet of the node itself.
	In string `json:"in,omitempty"`
}

// Service is the Service that a packet is for.
type Service struct {
	Name string `json:"name"`
	Port string `json:"port,omitempty"`
	// How the packet reaches it: "ClusterIP", "NodePort", or "external address".
	How string `json:"how"`
	// Local is true if the traffic policy that applies is Local.
	Local bool `json:"local,omitempty"`
	// Endpoints are all endpoints of the port in the IP family of the packet.
	Endpoints []Endpoint `json:"endpoints"`
}

// Endpoint is an endpoint of a Service.
type Endpoint struct {
	Address netip.AddrPort `json:"address"`
	OnNode  bool           `json:"onThisNode"`
	// Excluded is why new connections are not given to it, empty if they are.
	Excluded string `json:"excluded,omitempty"`
}

// Way is one thing that can happen to the packet.
type Way struct {
	// Verdict is "accept", "drop", "reject" or "undecided".
	Verdict string `json:"verdict"`
	// Reason is why it is dropped if no rule does, or why it is undecided.
	Reason string `json:"reason,omitempty"`
	// Probability is in (0, 1], or 0 if it is not known; it depends on Choices then.
	Probability float64  `json:"probability,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	// From and To are the addresses after translation.
	From netip.AddrPort `json:"from"`
	To   netip.AddrPort `json:"to"`
	// Out is the interface through which it leaves, empty if it stays on this node.
	Out string `json:"out,omitempty"`
	// Via is the router that the packet is sent to, none if it is sent to its destination.
	Via  netip.Addr `json:"via,omitzero"`
	Mark uint32     `json:"mark,omitempty"`
	// Steps are the rules that matched, and the policies at the ends of base chains.
	Steps []Step `json:"steps"`
	// Reply is the way of the reply through this node, nil if there is none.
	Reply *Reply `json:"reply,omitempty"`
}

// Reply is the way of the first reply.
type Reply struct {
	// Verdict and Reason are those of a Way.
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"`
	// Out and Via are those of a Way.
	Out   string     `json:"out,omitempty"`
	Via   netip.Addr `json:"via,omitzero"`
	Steps []Step     `json:"steps,omitempty"`
}

// Step is a rule that matched, or the policy of a base chain.
type Step struct {
	// Hook is "prerouting", "input", "forward", "output" or "postrouting", and Priority that
	// of the base chain.
	Hook     string `json:"hook"`
	Priority int32  `json:"priority"`
	Table    string `json:"table"`
	Chain    string `json:"chain"`
	// Handle is 0 for the policy of a chain.
	Handle uint64 `json:"handle,omitempty"`
	// Rule is the text of the rule in nft's words, "handle 7" if it has none, or "policy accept" and the like.
	Rule    string `json:"rule"`
	Comment string `json:"comment,omitempty"`
	// Owner is the fragment, as "publisher/name". It is empty for the policy of a chain, and if it
	// is not known. Foreign is true for tables of other programs.
	Owner   string `json:"owner,omitempty"`
	Foreign bool   `json:"foreign,omitempty"`
	// Lookups are the elements found, as "set services: element".
	Lookups []string `json:"lookups,omitempty"`
	// Verdict is what the rule decided, empty if evaluation went on with the next rule.
	Verdict string `json:"verdict,omitempty"`
}
