package explain

import (
	"net/netip"
)

// Answer describes the fate of a packet.
type Answer struct {
	// without a full stop
	Sentence string `json:"answer"`
	// the rule stopping the packet or its reply
	By     string `json:"by,omitempty"`
	Packet Packet `json:"packet"`
	// nil without a Service
	Service *Service `json:"service,omitempty"`
	// the most probable first
	Ways []Way `json:"ways"`
	// There are more ways than listed.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Packet is the first packet of a connection.
type Packet struct {
	Protocol string         `json:"protocol"`
	From     netip.AddrPort `json:"from"`
	To       netip.AddrPort `json:"to"`
	// "this node", "outside", or such as "pod shop/web"; empty for an address
	FromName string `json:"fromName,omitempty"`
	ToName   string `json:"toName,omitempty"`
	// empty for a packet of the node itself
	In string `json:"in,omitempty"`
}

// Service receives the packet.
type Service struct {
	Name string `json:"name"`
	Port string `json:"port,omitempty"`
	// "ClusterIP", "NodePort", "NodePort on a loopback address", or "external address"
	How string `json:"how"`
	// The traffic policy is Local.
	Local bool `json:"local,omitempty"`
	// in the IP family of the packet
	Endpoints []Endpoint `json:"endpoints"`
}

// Endpoint is an endpoint of a Service.
type Endpoint struct {
	Address netip.AddrPort `json:"address"`
	OnNode  bool           `json:"onThisNode"`
	// why it gets no new connections, or empty
	Excluded string `json:"excluded,omitempty"`
}

// Way is a possible outcome.
type Way struct {
	// "accept", "drop", "reject" or "undecided"
	Verdict string `json:"verdict"`
	// of a drop without a rule, or of "undecided"
	Reason string `json:"reason,omitempty"`
	// in (0, 1], or 0 for unknown with Choices
	Probability float64  `json:"probability,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	// after translation
	From netip.AddrPort `json:"from"`
	To   netip.AddrPort `json:"to"`
	// empty if it stays on this node
	Out string `json:"out,omitempty"`
	// invalid if reached directly
	Via  netip.Addr `json:"via,omitzero"`
	Mark uint32     `json:"mark,omitempty"`
	// matching rules and policies of base chains
	Steps []Step `json:"steps"`
	// the way of the first reply; nil unless the packet leaves this node
	Reply *Way `json:"reply,omitempty"`
}

// Step is a rule that matched, or the policy of a base chain.
type Step struct {
	// hook and priority of the base chain
	Hook     string `json:"hook"`
	Priority int32  `json:"priority"`
	Table    string `json:"table"`
	Chain    string `json:"chain"`
	// 0 for a policy
	Handle uint64 `json:"handle,omitempty"`
	// nft's text, "handle 7" or "policy accept"
	Rule    string `json:"rule"`
	Comment string `json:"comment,omitempty"`
	// "publisher/name", or empty; Foreign is for other programs' tables
	Owner   string `json:"owner,omitempty"`
	Foreign bool   `json:"foreign,omitempty"`
	// such as "services { KEY : DATA }"; for a trace also a verdict of a map
	Lookups []string `json:"lookups,omitempty"`
	// empty if the next rule follows
	Verdict string `json:"verdict,omitempty"`
}
