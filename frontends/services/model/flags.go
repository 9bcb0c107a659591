package model

import (
	discoveryv1 "k8s.io/api/discovery/v1"
)

// flags are an endpoint's state and place. Of endpoints with the same address the smallest flags win: not
// terminating (rule 66), then the best state, then local. The other bits make the order independent of the
// slices.
type flags uint8

const (
	// hints for nodes exist; they include this node
	hintedNode flags = 1 << iota
	forThisNode
	// Parsed slices lack these flags, because they depend on the node's zone.
	hintedZone
	forThisZone
	// not on this node
	elsewhere
	// Two bits are the state.
	_
	_
	// loses against others with the same address
	terminating
)

const stateBits = 5

func (t flags) state() state { return state(t >> stateBits & 3) }

func (t flags) local() bool { return t&elsewhere == 0 }

// The best state comes first.
type state uint8

const (
	ready state = iota
	// leaving endpoints serve while terminating. They get new flows if no endpoint is ready.
	leaving
	// serving endpoints are neither ready nor terminating. They keep existing flows.
	serving
	unusable
)

// stateFlags applies the API's defaults (rule 61).
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
