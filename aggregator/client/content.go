package client

import (
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Content is a fragment changed with patches; the session knows the content after each patch.
// StartPutContent passes ownership to the session.
type Content interface {
	// Fragment returns a snapshot, or nil if the content is unknown.
	Fragment() *weftv1.Fragment
	// Apply applies a committed patch. After a failure, Fragment returns nil.
	Apply(patch *weftv1.Patch)
	// Clone returns an independent copy.
	Clone() Content
}

type contentFunc func() *weftv1.Fragment

func (c contentFunc) Fragment() *weftv1.Fragment { return c() }
func (c contentFunc) Apply(*weftv1.Patch)        {}
func (c contentFunc) Clone() Content             { return c }
