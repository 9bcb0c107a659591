package explain

import (
	"net/netip"
)

// Answer describes the fate of a packet.
type Answer struct {
	// cause and remedy if the packet does not arrive; without a full stop
	Sentence string `json:"answer"`
	// the rule that stops the packet
	By     string `json:"by,omitempty"`
	Packet Packet `json:"packet"`
	// the Service with the packet's address and port, or nil
	Service *Service `json:"service,omitempty"`
	// the most probable first
	Ways []Way `json:"ways"`
	// The evaluator found more ways than it lists.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Packet is the first packet of a connection.
type Packet struct {
	Protocol string         `json:"protocol"`
	From     netip.AddrPort `json:"from"`
	To       netip.AddrPort `json:"to"`
	// "this node", or the name of a pod or a Service
	FromName string `json:"fromName,omitempty"`
	ToName   string `json:"toName,omitempty"`
	// the interface of arrival, empty for a packet of the node itself
	In string `json:"in,omitempty"`
}

// Service is the Service that receives the packet.
type Service struct {
	Name string `json:"name"`
	Port string `json:"port,omitempty"`
	// "ClusterIP", "NodePort", or "external address"
	How string `json:"how"`
	// The applicable traffic policy is Local.
	Local bool `json:"local,omitempty"`
	// all endpoints of the port in the IP family of the packet
	Endpoints []Endpoint `json:"endpoints"`
}

// Endpoint is an endpoint of a Service.
type Endpoint struct {
	Address netip.AddrPort `json:"address"`
	OnNode  bool           `json:"onThisNode"`
	// why the endpoint gets no new connections, or empty
	Excluded string `json:"excluded,omitempty"`
}

// Way is a possible outcome for the packet.
type Way struct {
	// "accept", "drop", "reject" or "undecided"
	Verdict string `json:"verdict"`
	// the cause of a drop without a rule, or of "undecided"
	Reason string `json:"reason,omitempty"`
	// in (0, 1], or 0 if unknown; then Choices lists the conditions
	Probability float64  `json:"probability,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	// after translation
	From netip.AddrPort `json:"from"`
	To   netip.AddrPort `json:"to"`
	// empty if the packet stays on this node
	Out string `json:"out,omitempty"`
	// the next router, invalid if the destination is reached directly
	Via  netip.Addr `json:"via,omitzero"`
	Mark uint32     `json:"mark,omitempty"`
	// matching rules, and the policies at the ends of base chains
	Steps []Step `json:"steps"`
	// nil if no reply passes this node
	Reply *Reply `json:"reply,omitempty"`
}

// Reply is the way of the first reply.
type Reply struct {
	// as in Way
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"`
	// as in Way
	Out   string     `json:"out,omitempty"`
	Via   netip.Addr `json:"via,omitzero"`
	Steps []Step     `json:"steps,omitempty"`
}

// Step is a rule that matched, or the policy of a base chain.
type Step struct {
	// "prerouting", "input", "forward", "output" or "postrouting", and the base chain's priority
	Hook     string `json:"hook"`
	Priority int32  `json:"priority"`
	Table    string `json:"table"`
	Chain    string `json:"chain"`
	// 0 for the policy of a chain
	Handle uint64 `json:"handle,omitempty"`
	// nft's text, "handle 7" without a text, or "policy accept" and the like
	Rule    string `json:"rule"`
	Comment string `json:"comment,omitempty"`
	// the fragment as "publisher/name", empty for policies and unknown owners; Foreign is true for other
	// programs' tables
	Owner   string `json:"owner,omitempty"`
	Foreign bool   `json:"foreign,omitempty"`
	// the elements found, as "set services: element"
	Lookups []string `json:"lookups,omitempty"`
	// empty if evaluation went on with the next rule
	Verdict string `json:"verdict,omitempty"`
}
