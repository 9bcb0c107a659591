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

// fixed is the content of a fragment that changes by Put alone.
type fixed struct{ fragment *weftv1.Fragment }

func (c fixed) Fragment() *weftv1.Fragment { return c.fragment }
func (c fixed) Apply(*weftv1.Patch)        {}
func (c fixed) Clone() Content             { return c }

// callback is the content that the publisher keeps: SessionConfig.Snapshot.
type callback struct {
	name     string
	snapshot func(string) *weftv1.Fragment
}

func (c callback) Fragment() *weftv1.Fragment { return c.snapshot(c.name) }
func (c callback) Apply(*weftv1.Patch)        {}
func (c callback) Clone() Content             { return c }
