package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// A caller sees its publisher's own content; an administrator or a publisher with the right to read
// sees all. Lists omit hidden content, and requests for it are refused.

func (c caller) reader() aggregator.Reader {
	return aggregator.Reader{Publisher: c.Publisher, All: c.Read}
}

func (c caller) unreadable(what string) error {
	if pub := c.access.Publisher(c.Publisher); pub != nil {
		return pub.Reads(what)
	}
	return fmt.Errorf("%w: %s", aggregator.ErrHidden, what)
}

func (c caller) hidden(err error, what string) error {
	if errors.Is(err, aggregator.ErrHidden) {
		return c.unreadable(what)
	}
	return err
}

func (s *service) GetFragment(req *weftv1.GetFragmentRequest, stream grpc.ServerStreamingServer[weftv1.GetFragmentResponse]) error {
	c, name := callerFrom(stream.Context()), req.GetFragment()
	publisher := cmp.Or(name.GetPublisher(), c.Publisher)
	if !c.reader().Sees(publisher) {
		return c.unreadable("fragment " + publisher + "/" + name.GetName())
	}
	return s.reads.call(stream.Context(), func(r *read, _ caller) error {
		st, content, err := s.agg.Get(stream.Context(), publisher, name.GetName())
		if err != nil {
			return err
		}
		return sendAll(r, content, func(part *weftv1.Fragment) error {
			defer func() { st = nil }() // in the first part only
			return stream.Send(&weftv1.GetFragmentResponse{Status: st, Fragment: part})
		})
	})
}

func (s *service) ListFragments(_ *weftv1.ListFragmentsRequest, stream grpc.ServerStreamingServer[weftv1.ListFragmentsResponse]) error {
	return s.reads.call(stream.Context(), func(r *read, c caller) error {
		fragments, revision := s.agg.List()
		fragments = slices.DeleteFunc(fragments, func(f *weftv1.FragmentStatus) bool { return !c.reader().Sees(f.GetFragment().GetPublisher()) })
		return sendList(r, fragments, func(part []*weftv1.FragmentStatus) error {
			defer func() { revision = 0 }() // in the first part only
			return stream.Send(&weftv1.ListFragmentsResponse{Fragments: part, Revision: revision})
		})
	})
}

func (s *service) GetTable(req *weftv1.GetTableRequest, stream grpc.ServerStreamingServer[weftv1.GetTableResponse]) error {
	return s.reads.call(stream.Context(), func(r *read, c caller) error {
		table, err := s.agg.GetTable(stream.Context(), req, c.reader())
		if err != nil {
			return c.hidden(err, "table "+req.GetFamily()+" "+req.GetName())
		}
		return sendAll(r, table, stream.Send)
	})
}

func (s *service) ListTables(_ *weftv1.ListTablesRequest, stream grpc.ServerStreamingServer[weftv1.ListTablesResponse]) error {
	return s.reads.call(stream.Context(), func(r *read, c caller) error {
		all, err := s.agg.ListTables(stream.Context(), c.reader())
		if err != nil {
			return err
		}
		return sendList(r, all.GetTables(), func(part []*weftv1.TableStatus) error {
			defer func() { all.Revision = 0 }() // in the first part only
			return stream.Send(&weftv1.ListTablesResponse{Tables: part, Revision: all.GetRevision()})
		})
	})
}

func (s *service) ListPublishers(_ *weftv1.ListPublishersRequest, stream grpc.ServerStreamingServer[weftv1.ListPublishersResponse]) error {
	return s.reads.call(stream.Context(), func(r *read, c caller) error {
		all, err := s.agg.ListPublishers()
		if err != nil {
			return err
		}
		publishers := slices.DeleteFunc(all.GetPublishers(), func(p *weftv1.PublisherStatus) bool { return !c.reader().Sees(p.GetName()) })
		return sendList(r, publishers, func(part []*weftv1.PublisherStatus) error {
			return stream.Send(&weftv1.ListPublishersResponse{Publishers: part})
		})
	})
}

func (s *service) Owner(ctx context.Context, req *weftv1.OwnerRequest) (*weftv1.OwnerResponse, error) {
	var resp *weftv1.OwnerResponse
	err := s.reads.call(ctx, func(_ *read, c caller) (err error) {
		resp, err = s.agg.Owner(ctx, req, c.reader())
		return c.hidden(err, req.GetObject().Text())
	})
	return resp, err
}

// Watch sends the header once events are being collected.
func (s *service) Watch(_ *weftv1.WatchRequest, stream grpc.ServerStreamingServer[weftv1.WatchResponse]) error {
	c := callerFrom(stream.Context())
	return s.agg.Watch(stream.Context(), func() error { return stream.SendHeader(metadata.MD{}) }, func(e *weftv1.WatchResponse) error {
		// The configuration may have changed since the last event.
		id, err := c.access.Resolve(&c.Peer, c.Publisher)
		if err != nil {
			return err
		}
		if reader := (aggregator.Reader{Publisher: c.Publisher, All: id.Read}); !reader.All {
			if e, err = eventFor(reader, e); err != nil || e == nil {
				return err
			}
		}
		return stream.Send(e)
	})
}

// eventFor returns the part of an event for a reader, or nil.
func eventFor(reader aggregator.Reader, e *weftv1.WatchResponse) (*weftv1.WatchResponse, error) {
	sees := func(n *weftv1.FragmentName) bool { return reader.Sees(n.GetPublisher()) }
	var seen bool
	switch ev := e.GetEvent().(type) {
	case *weftv1.WatchResponse_Commit:
		all := ev.Commit.GetFragments()
		var own []*weftv1.FragmentName
		for _, n := range all {
			if sees(n) {
				own = append(own, n)
			}
		}
		if seen = len(own) > 0; seen && len(own) < len(all) {
			// The numbers of changes cover all fragments together.
			c := &weftv1.Commit{Revision: ev.Commit.GetRevision(), Fragments: own, Wait: ev.Commit.GetWait(), Build: ev.Commit.GetBuild(), Kernel: ev.Commit.GetKernel()}
			return &weftv1.WatchResponse{Time: e.GetTime(), Event: &weftv1.WatchResponse_Commit{Commit: c}}, nil
		}
	case *weftv1.WatchResponse_Rejection:
		seen = sees(ev.Rejection.GetFragment())
	case *weftv1.WatchResponse_Drift:
		// Drift names tables of other publishers.
	case *weftv1.WatchResponse_Presence:
		seen = reader.Sees(ev.Presence.GetPublisher())
	case *weftv1.WatchResponse_Expired:
		seen = sees(ev.Expired.GetFragment())
	case *weftv1.WatchResponse_Finding:
		seen = sees(ev.Finding.GetFinding().GetSubject()) || sees(ev.Finding.GetFinding().GetOther())
	default:
		return nil, fmt.Errorf("event %T is unknown", ev)
	}
	if !seen {
		return nil, nil //nolint:nilnil // it is left out
	}
	return e, nil
}
