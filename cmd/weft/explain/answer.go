package explain

import (
	"net/netip"
)

// Answer describes the fate of a packet.
type Answer struct {
	// Sentence is the answer in short; for a packet that does not arrive the cause, then the remedy. It has
	// no full stop.
	Sentence string `json:"answer"`
	// By is the rule that stops the packet, or empty.
	By     string `json:"by,omitempty"`
	Packet Packet `json:"packet"`
	// Service is the Service with the packet's address and port, or nil.
	Service *Service `json:"service,omitempty"`
	// Ways are the possible outcomes, the most probable first.
	Ways []Way `json:"ways"`
	// Incomplete is true if the evaluator found more ways than it lists.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Packet is the packet in question, the first of its connection.
type Packet struct {
	Protocol string         `json:"protocol"`
	From     netip.AddrPort `json:"from"`
	To       netip.AddrPort `json:"to"`
	// FromName and ToName are "this node", or the name of a pod or a Service.
	FromName string `json:"fromName,omitempty"`
	ToName   string `json:"toName,omitempty"`
	// In is the interface of arrival, empty for a packet of the node itself.
	In string `json:"in,omitempty"`
}

// Service is the Service that receives the packet.
type Service struct {
	Name string `json:"name"`
	Port string `json:"port,omitempty"`
	// How is "ClusterIP", "NodePort", or "external address".
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
	// Excluded is the reason why the endpoint gets no new connections, or empty.
	Excluded string `json:"excluded,omitempty"`
}

// Way is a possible outcome for the packet.
type Way struct {
	// Verdict is "accept", "drop", "reject" or "undecided".
	Verdict string `json:"verdict"`
	// Reason is the cause of a drop without a rule, or of "undecided".
	Reason string `json:"reason,omitempty"`
	// Probability is in (0, 1], or 0 if it is unknown; then Choices lists the conditions.
	Probability float64  `json:"probability,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	// From and To are the addresses after translation.
	From netip.AddrPort `json:"from"`
	To   netip.AddrPort `json:"to"`
	// Out is the outgoing interface, empty if the packet stays on this node.
	Out string `json:"out,omitempty"`
	// Via is the next router, invalid if the packet is sent to its destination directly.
	Via  netip.Addr `json:"via,omitzero"`
	Mark uint32     `json:"mark,omitempty"`
	// Steps are the rules that matched, and the policies at the ends of base chains.
	Steps []Step `json:"steps"`
	// Reply is the way of the reply through this node, or nil.
	Reply *Reply `json:"reply,omitempty"`
}

// Reply is the way of the first reply.
type Reply struct {
	// See Way.
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"`
	// See Way.
	Out   string     `json:"out,omitempty"`
	Via   netip.Addr `json:"via,omitzero"`
	Steps []Step     `json:"steps,omitempty"`
}

// Step is a rule that matched, or the policy of a base chain.
type Step struct {
	// Hook is "prerouting", "input", "forward", "output" or "postrouting". Priority is the priority of the
	// base chain.
	Hook     string `json:"hook"`
	Priority int32  `json:"priority"`
	Table    string `json:"table"`
	Chain    string `json:"chain"`
	// Handle is 0 for the policy of a chain.
	Handle uint64 `json:"handle,omitempty"`
	// Rule is the text of the rule in nft's words, "handle 7" if it has none, or "policy accept" and the
	// like.
	Rule    string `json:"rule"`
	Comment string `json:"comment,omitempty"`
	// Owner is the fragment, as "publisher/name", empty for policies and unknown owners. Foreign is true
	// for tables of other programs.
	Owner   string `json:"owner,omitempty"`
	Foreign bool   `json:"foreign,omitempty"`
	// Lookups are the elements found, as "set services: element".
	Lookups []string `json:"lookups,omitempty"`
	// Verdict is the rule's decision, empty if evaluation went on with the next rule.
	Verdict string `json:"verdict,omitempty"`
}
