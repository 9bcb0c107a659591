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
	// readerPatience is the total time to wait for a slow caller, because the listing holds the
	// kernel's dump open.
	readerPatience = 5 * time.Second
)

var errSlowReader = fmt.Errorf("%w: the listing was not read for %v: read it faster, or name fewer addresses", errLimit, readerPatience)

// flowParts sends entries from its own goroutine, so a slow reader cannot hold the dump longer than
// readerPatience. Its methods must be called from one goroutine.
type flowParts struct {
	ctx context.Context //nolint:containedctx // it is that of the call
	// the part being filled, and memory for it
	part *weftv1.ListFlowsResponse
	rows []flowRow
	// the goroutine reports its outcome on sent
	parts chan *weftv1.ListFlowsResponse
	sent  chan error
	// wait of add and finish for the reader
	waited time.Duration
}

// flowRow is the memory of an entry. The rows of a part are allocated together, because they are
// many.
type flowRow struct {
	flow      weftv1.Flow
	bytes     weftv1.FlowBytes
	addresses [4][net.IPv6len]byte
}

// sendFlows starts a goroutine that ends with ctx, or after finish.
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
		p.part, p.rows = &weftv1.ListFlowsResponse{Flows: make([]*weftv1.Flow, 0, flowsOfPart)}, make([]flowRow, flowsOfPart)
	}
	p.part.Flows = append(p.part.Flows, p.rows[len(p.part.GetFlows())].fill(e))
	if len(p.part.GetFlows()) < flowsOfPart {
		return nil
	}
	return p.flush()
}

func (p *flowParts) flush() error {
	part := p.part
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

func (r *flowRow) fill(e *conntrack.Entry) *weftv1.Flow {
	f := &r.flow
	f.Protocol = uint32(e.Protocol)
	for i, end := range []struct {
		of      netip.AddrPort
		address *[]byte
		port    *uint32
	}{
		{e.Source, &f.Source, &f.SourcePort}, {e.Destination, &f.Destination, &f.DestinationPort},
		{e.ReplySource, &f.ReplySource, &f.ReplySourcePort}, {e.ReplyDestination, &f.ReplyDestination, &f.ReplyDestinationPort},
	} {
		b := end.of.Addr().As16()
		from := 0
		if end.of.Addr().Is4() {
			from = net.IPv6len - net.IPv4len
		}
		*end.address = r.addresses[i][:copy(r.addresses[i][:], b[from:])]
		*end.port = uint32(end.of.Port())
	}
	f.Zone, f.Id = uint32(e.Zone), e.ID
	f.SeenReply, f.Assured, f.TcpState = e.SeenReply, e.Assured, weftv1.TCPState(e.TCPState)
	if e.Accounted {
		f.Bytes = &r.bytes
		f.Bytes.Original, f.Bytes.Reply = e.OriginalBytes, e.ReplyBytes
	}
	return f
}
