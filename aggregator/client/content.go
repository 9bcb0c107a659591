package client

import (
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Content is a fragment that its publisher changes with patches. The session knows the content
// after each patch, and owns a Content after StartPutContent.
type Content interface {
	// Fragment returns the content as a snapshot, or nil if it is unknown.
	Fragment() *weftv1.Fragment
	// Apply applies a committed patch. After a failure, Fragment returns nil.
	Apply(patch *weftv1.Patch)
	// Clone returns an independent copy.
	Clone() Content
}

// contentFunc is content that committed patches do not change.
type contentFunc func() *weftv1.Fragment

func (c contentFunc) Fragment() *weftv1.Fragment { return c() }
func (c contentFunc) Apply(*weftv1.Patch)        {}
func (c contentFunc) Clone() Content             { return c }
