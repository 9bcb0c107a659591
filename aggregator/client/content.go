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

// fixed is the Content of a Put. It cannot be patched.
type fixed struct{ fragment *weftv1.Fragment }

func (c fixed) Fragment() *weftv1.Fragment { return c.fragment }
func (c fixed) Apply(*weftv1.Patch)        {}
func (c fixed) Clone() Content             { return c }

// live is the Content of a publisher with SessionConfig.Snapshot: put until it is committed or
// patched, and then the result of the function, with all changes, also rejected ones.
type live struct {
	put      *weftv1.Fragment
	snapshot func(name string) *weftv1.Fragment
	name     string
}

func (c *live) Fragment() *weftv1.Fragment {
	if c.put != nil {
		return c.put
	}
	return c.snapshot(c.name)
}

func (c *live) Apply(*weftv1.Patch) { c.put = nil }
func (c *live) Clone() Content      { clone := *c; return &clone }
