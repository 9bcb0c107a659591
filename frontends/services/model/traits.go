package model

import (
	discoveryv1 "k8s.io/api/discovery/v1"
)

// traits are what matters of an endpoint beside its address. Of several with one
// address that with the smallest traits counts: one that does not terminate (rule
// 66), then the one that can be used best, then one on this node. The rest only
// makes the order the same whatever slice came first.
type traits uint8

const (
	// hintedNode and forThisNode: there are node hints, this node is in them.
	hintedNode traits = 1 << iota
	forThisNode
	// hintedZone and forThisZone: the same for zones. They are known only when
	// the node's zone is, so not in parsed form.
	hintedZone
	forThisZone
	// elsewhere is an endpoint that is not on this node.
	elsewhere
	// Two bits are the state.
	_
	_
	// terminating endpoints give way to another one with the same address.
	terminating
)

// stateBits is where the state is.
const stateBits = 5

func (t traits) state() state { return state(t >> stateBits & 3) }

func (t traits) local() bool { return t&elsewhere == 0 }

// state is how far an endpoint can be used, the best first.
type state uint8

const (
	// ready endpoints get new flows.
	ready state = iota
	// leaving endpoints serve but terminate: they get new flows if none is ready.
	leaving
	// serving endpoints are neither ready nor terminating, but serve the flows
	// that they have.
	serving
	// unusable endpoints get nothing.
	unusable
)

// stateOf applies the defaults of the API (rule 61).
func stateOf(c *discoveryv1.EndpointConditions) traits {
	isReady := c.Ready == nil || *c.Ready
	isServing := c.Serving == nil || *c.Serving
	var t traits
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
	return t | traits(of)<<stateBits
}
