package server

import (
	"fmt"
	"sync"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// maxStreamsPerUser is the number of concurrent calls of a uid, except unary calls.
const maxStreamsPerUser = 4096

// streams outlive the configuration under which they were opened.
type streams struct {
	access *access.Control

	mu     sync.Mutex
	open   map[*openStream]struct{}
	byUser counts[uint32]
	// Publish streams only
	byPublisher counts[string]
}

type openStream struct {
	caller caller
	method string
	// has room for the one error
	lost chan error
}

func newStreams(c *access.Control) *streams {
	return &streams{access: c, open: make(map[*openStream]struct{}), byUser: counts[uint32]{}, byPublisher: counts[string]{}}
}

func (s *streams) add(c caller, method string) (*openStream, error) {
	o := &openStream{caller: c, method: method, lost: make(chan error, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.byUser[c.UID]; n >= maxStreamsPerUser {
		return nil, fmt.Errorf("%w: uid %d has %d streams open: at most %d are allowed", errLimit, c.UID, n, maxStreamsPerUser)
	}
	if method == weftv1.Publisher_Publish_FullMethodName {
		if pub := s.access.Publisher(c.Publisher); pub != nil {
			if r := pub.Streams(s.byPublisher[c.Publisher] + 1); r != nil {
				return nil, r
			}
		}
		s.byPublisher.add(c.Publisher, 1)
	}
	s.byUser.add(c.UID, 1)
	s.open[o] = struct{}{}
	// The configuration may have changed since the caller was authorized.
	s.check(o)
	return o, nil
}

func (s *streams) remove(o *openStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, o)
	s.byUser.add(o.caller.UID, -1)
	if o.method == weftv1.Publisher_Publish_FullMethodName {
		s.byPublisher.add(o.caller.Publisher, -1)
	}
}

func (s *streams) review() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o := range s.open {
		s.check(o)
	}
}

// check requires the lock.
func (s *streams) check(o *openStream) {
	id, err := s.access.Resolve(&o.caller.Peer, o.caller.Publisher)
	if err == nil {
		c := o.caller
		c.Identity = id
		err = c.mayCall(o.method)
	}
	if err != nil {
		select {
		case o.lost <- err:
		default:
		}
	}
}
