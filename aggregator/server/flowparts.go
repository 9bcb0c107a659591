package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/conntrack"
)

const (
	// entries in one part of a listing, at most 128 KiB
	flowsOfPart = 1024
	// parts waiting to be sent
	maxFlowParts = 4
	// bytes
	addressBlock = 4096
	// readerPatience is the total time to wait for a slow caller, because the listing holds the
	// kernel's dump open.
	readerPatience = 5 * time.Second
)

var errSlowReader = fmt.Errorf("%w: the listing was not read for %v: read it faster, or name fewer addresses", errLimit, readerPatience)

// flowParts sends entries from its own goroutine, so a slow reader cannot hold the dump longer than
// readerPatience. Its methods must be called from one goroutine.
type flowParts struct {
	ctx  context.Context //nolint:containedctx // it is that of the call
	part *flowPart
	// the goroutine reports its outcome on sent
	parts chan *weftv1.ListFlowsResponse
	sent  chan error
	// wait of add and finish for the reader
	waited time.Duration
}

// flowPart allocates entries and addresses together, because they are many.
type flowPart struct {
	flows [flowsOfPart]weftv1.Flow
	bytes []weftv1.FlowBytes
	addrs []byte
	resp  *weftv1.ListFlowsResponse
}

// The goroutine ends with ctx, or after finish.
func sendFlows(ctx context.Context, send func(*weftv1.ListFlowsResponse) error) *flowParts {
	p := &flowParts{ctx: ctx, parts: make(chan *weftv1.ListFlowsResponse, maxFlowParts), sent: make(chan error, 1)}
	go func() {
		var err error
		for more := true; more && err == nil; {
			var part *weftv1.ListFlowsResponse
			select {
			case part, more = <-p.parts:
				if more {
					err = send(part)
				}
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		p.sent <- err
	}()
	return p
}

// add returns errSlowReader, the error of sending, or the error of ctx.
func (p *flowParts) add(e *conntrack.Entry) error {
	if p.part == nil {
		p.part = &flowPart{resp: &weftv1.ListFlowsResponse{Flows: make([]*weftv1.Flow, 0, flowsOfPart)}}
	}
	p.part.add(e)
	if len(p.part.resp.GetFlows()) < flowsOfPart {
		return nil
	}
	return p.flush()
}

func (p *flowParts) flush() error {
	part := p.part.resp
	p.part = nil
	select {
	case p.parts <- part:
		return nil
	default:
	}
	return p.await(func(timeout <-chan time.Time) error {
		select {
		case p.parts <- part:
			return nil
		case err := <-p.sent:
			return err
		case <-timeout:
			return errSlowReader
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	})
}

// await counts the time of f, and gives f a channel for the end of the reader's time.
func (p *flowParts) await(f func(timeout <-chan time.Time) error) error {
	began := time.Now()
	timer := time.NewTimer(readerPatience - p.waited)
	defer timer.Stop()
	err := f(timer.C)
	p.waited += time.Since(began)
	return err
}

// finish sends the last part and waits until all are sent. It returns err if err is not nil.
func (p *flowParts) finish(err error) error {
	if err == nil && p.part != nil {
		err = p.flush()
	}
	if err != nil {
		return err
	}
	close(p.parts)
	return p.await(func(timeout <-chan time.Time) error {
		select {
		case err := <-p.sent:
			return err
		case <-timeout:
			return errSlowReader
		}
	})
}

// The part must have room.
func (p *flowPart) add(e *conntrack.Entry) {
	f := &p.flows[len(p.resp.GetFlows())]
	p.resp.Flows = append(p.resp.Flows, f)
	f.Protocol = uint32(e.Protocol)
	f.Source, f.SourcePort = p.address(e.Source.Addr()), uint32(e.Source.Port())
	f.Destination, f.DestinationPort = p.address(e.Destination.Addr()), uint32(e.Destination.Port())
	f.ReplySource, f.ReplySourcePort = p.address(e.ReplySource.Addr()), uint32(e.ReplySource.Port())
	f.ReplyDestination, f.ReplyDestinationPort = p.address(e.ReplyDestination.Addr()), uint32(e.ReplyDestination.Port())
	f.Zone, f.Id = uint32(e.Zone), e.ID
	f.SeenReply, f.Assured, f.TcpState = e.SeenReply, e.Assured, weftv1.TCPState(e.TCPState)
	if e.Accounted {
		f.Bytes = p.counted(e)
	}
}

func (p *flowPart) counted(e *conntrack.Entry) *weftv1.FlowBytes {
	if p.bytes == nil {
		p.bytes = make([]weftv1.FlowBytes, flowsOfPart)
	}
	b := &p.bytes[len(p.resp.GetFlows())-1]
	b.Original, b.Reply = e.OriginalBytes, e.ReplyBytes
	return b
}

func (p *flowPart) address(a netip.Addr) []byte {
	if cap(p.addrs)-len(p.addrs) < net.IPv6len {
		p.addrs = make([]byte, 0, addressBlock)
	}
	from := len(p.addrs)
	if a.Is4() {
		b := a.As4()
		p.addrs = append(p.addrs, b[:]...)
	} else {
		b := a.As16()
		p.addrs = append(p.addrs, b[:]...)
	}
	return p.addrs[from:len(p.addrs):len(p.addrs)]
}
