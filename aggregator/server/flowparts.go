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
	// flowsOfPart is the number of entries in one part of a listing, which has at most
	// 128 KiB then.
	flowsOfPart = 1024
	// maxFlowParts is the number of parts that wait to be sent.
	maxFlowParts = 4
	// addressBlock is the number of bytes for addresses that are allocated at a time.
	addressBlock = 4096
	// readerPatience is how long a listing waits altogether for a caller who does not read,
	// while it has the kernel's dump open.
	readerPatience = 5 * time.Second
)

// errSlowReader is a caller who does not read a listing.
var errSlowReader = fmt.Errorf("%w: the listing was not read for %v: read it faster, or name fewer addresses", errLimit, readerPatience)

// flowParts sends entries in parts, from a goroutine of its own, so that a slow reader does not
// hold the dump for longer than readerPatience. One goroutine calls its methods.
type flowParts struct {
	ctx context.Context //nolint:containedctx // it is that of the call
	// part is not full yet.
	part *flowPart
	// parts are sent by the goroutine, which sends its outcome to sent at the end.
	parts chan *weftv1.ListFlowsResponse
	sent  chan error
	// waited is how long add and finish have waited for the reader.
	waited time.Duration
}

// flowPart is a part with the memory of its entries and addresses, which are too many to be
// allocated one by one.
type flowPart struct {
	flows [flowsOfPart]weftv1.Flow
	bytes []weftv1.FlowBytes
	addrs []byte
	resp  *weftv1.ListFlowsResponse
}

// sendFlows starts the goroutine, which ends when ctx does, or after finish.
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

// add adds an entry.
//
// Possible errors: errSlowReader, that of sending, ctx's.
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

// flush hands the part over.
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

// await calls f with a channel that delivers when the reader's time is up, and counts how long
// it takes.
func (p *flowParts) await(f func(timeout <-chan time.Time) error) error {
	began := time.Now()
	timer := time.NewTimer(readerPatience - p.waited)
	defer timer.Stop()
	err := f(timer.C)
	p.waited += time.Since(began)
	return err
}

// finish sends the last part, and waits until all are sent. If err is not nil, it returns that.
//
// Possible errors: those of add.
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

// add adds an entry to a part that has room for it.
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

// counted returns the bytes of an entry.
func (p *flowPart) counted(e *conntrack.Entry) *weftv1.FlowBytes {
	if p.bytes == nil {
		p.bytes = make([]weftv1.FlowBytes, flowsOfPart)
	}
	b := &p.bytes[len(p.resp.GetFlows())-1]
	b.Original, b.Reply = e.OriginalBytes, e.ReplyBytes
	return b
}

// address returns the bytes of an address.
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
