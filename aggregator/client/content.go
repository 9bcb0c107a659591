package client

import (
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Content is a fragment that its publisher changes with patches of its own, and
// whose content the session has to know after each of them: StartPutContent
// passes it to the session, which owns it from then on.
type Content interface {
	// Fragment returns the content as a snapshot, or nil if it is not known.
	Fragment() *weftv1.Fragment
	// Apply applies a patch that the aggregator has committed. If it cannot,
	// Fragment returns nil from then on.
	Apply(patch *weftv1.Patch)
	// Clone returns a copy that Apply can change.
	Clone() Content
}

// contentFunc is the content of a fragment that the publisher keeps, or that changes by Put
// alone: patches that were committed do not change it.
type contentFunc func() *weftv1.Fragment

func (c contentFunc) Fragment() *weftv1.Fragment { return c() }
func (c contentFunc) Apply(*weftv1.Patch)        {}
func (c contentFunc) Clone() Content             { return c }
