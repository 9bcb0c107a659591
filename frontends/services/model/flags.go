package model

import (
	discoveryv1 "k8s.io/api/discovery/v1"
)

// flags are the properties of an endpoint that decide how it is used. Of several
// endpoints with one address the smallest flags count: one that does not terminate (rule
// 66), then one in the best state, then one on this node. The other bits only make the
// order independent of that of the slices.
type flags uint8

const (
	// hintedNode means that there are hints for nodes, forThisNode that this node is one
	// of them.
	hintedNode flags = 1 << iota
	forThisNode
	// hintedZone and forThisZone are the same for zones. They depend on the node's zone,
	// so parsed slices do not have them.
	hintedZone
	forThisZone
	// elsewhere means that the endpoint is not on this node.
	elsewhere
	// Two bits are the state.
	_
	_
	// terminating endpoints are used only if no other endpoint has the same address.
	terminating
)

// stateBits is the position of the state.
const stateBits = 5

func (t flags) state() state { return state(t >> stateBits & 3) }

func (t flags) local() bool { return t&elsewhere == 0 }

// state is how an endpoint can be used, the best first.
type state uint8

const (
	// ready endpoints get new flows.
	ready state = iota
	// leaving endpoints serve but terminate: they get new flows if none is ready.
	leaving
	// serving endpoints are neither ready nor terminating, but serve the flows that they
	// have.
	serving
	// unusable endpoints get no traffic.
	unusable
)

// stateFlags applies the defaults of the API (rule 61).
func stateFlags(c *discoveryv1.EndpointConditions) flags {
	isReady := c.Ready == nil || *c.Ready
	isServing := c.Serving == nil || *c.Serving
	var t flags
	if c.Terminating != nil && *c.Terminating {
		t = terminating
	}
	of := unusable
	switch {
	case isReady:
		of = ready
	case isServing && t != 0:
		of = leaving
	case isServing:
		of = serving
	}
	return t | flags(of)<<stateBits
}
