package traffic

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

const (
	// listEvery is the least time between the starts of two listings, and listShare the share
	// of time in which one may run, as 1/listShare.
	listEvery = 15 * time.Second
	listShare = 20
	// maxListAge is for how long the result of a listing is exported.
	maxListAge = 5 * time.Minute
	// listTimeout ends a listing.
	listTimeout = time.Minute
	// patience is how long a scrape waits for a listing that it has begun.
	patience = 100 * time.Millisecond
)

// flowCount is what entries of conntrack add up to.
type flowCount struct{ connections, original, reply uint64 }

func (c *flowCount) add(f *client.Flow) {
	c.connections++
	c.original += f.OriginalBytes
	c.reply += f.ReplyBytes
}

// flowCounts is the result of a listing.
type flowCounts struct {
	ports, endpoints map[labels]flowCount
	// accounted is true if the kernel counts bytes.
	accounted bool
}

// flowReader lists the connections of Services. A listing can take longer than a scrape, so it
// runs beside it.
type flowReader struct {
	cfg *Config

	mu    sync.Mutex
	last  *flowCounts
	begun time.Time
	// took is how long the last listing took, and done is closed when it has ended; nil
	// before the first one.
	took time.Duration
	done chan struct{}
	stop context.CancelFunc
}

// latest returns the result of the last listing, nil if there is none, or if it is too old. It
// begins another one if it is time to, and waits a moment for that.
func (r *flowReader) latest(ctx context.Context, c *client.Client) *flowCounts {
	r.mu.Lock()
	now := r.cfg.Now()
	if !r.running() && now.Sub(r.begun) >= max(listEvery, listShare*r.took) {
		r.begin(c, now)
	}
	done := r.done
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || r.cfg.Now().Sub(r.begun) > maxListAge {
		return nil
	}
	return r.last
}

// running reports whether a listing has not ended.
func (r *flowReader) running() bool {
	if r.done == nil {
		return false
	}
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// begin begins a listing. The caller holds the lock.
func (r *flowReader) begin(c *client.Client, now time.Time) {
	done := make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	r.begun, r.done, r.stop = now, done, cancel
	go func() {
		defer close(done)
		defer cancel()
		out := &flowCounts{ports: make(map[labels]flowCount), endpoints: make(map[labels]flowCount)}
		err := c.ListAllFlows(ctx, func(flows []client.Flow) error {
			for i := range flows {
				out.add(&flows[i], r.cfg.Ports, r.cfg.Counters >= render.CountEndpoints)
			}
			return nil
		})
		r.mu.Lock()
		defer r.mu.Unlock()
		r.took = r.cfg.Now().Sub(now)
		if err != nil {
			r.last = nil
			r.cfg.Logger.Debug("no active connections of Services", "err", err)
			return
		}
		r.last = out
	}()
}

// wait ends a listing that runs.
func (r *flowReader) wait() {
	r.mu.Lock()
	done, stop := r.done, r.stop
	r.mu.Unlock()
	if done != nil {
		stop()
		<-done
	}
}

// add counts an entry that is a connection to a Service.
func (c *flowCounts) add(f *client.Flow, ports Ports, endpoints bool) {
	closed := f.TCPState == weftv1.TCPState_TCP_STATE_TIME_WAIT || f.TCPState == weftv1.TCPState_TCP_STATE_CLOSE
	if closed || f.Destination == f.ReplySource || !f.ReplySource.IsValid() {
		return // closed, or not translated
	}
	p, ok := portAt(f, ports)
	if !ok {
		return
	}
	c.accounted = c.accounted || f.Accounted
	addTo(c.ports, labelsOf(p, ""), f)
	if endpoints {
		addTo(c.endpoints, labelsOf(p, f.ReplySource.String()), f)
	}
}

// portAt returns the port that a connection was sent to: one of an address, or else a NodePort.
func portAt(f *client.Flow, ports Ports) (render.Port, bool) {
	protocol := model.Protocol(f.Protocol)
	to := netip.AddrPortFrom(f.Destination.Addr().Unmap(), f.Destination.Port())
	if p, ok := ports.PortAt(to, protocol); ok {
		return p, true
	}
	return ports.PortAtNodePort(model.FamilyOf(to.Addr()), to.Port(), protocol)
}

func addTo(all map[labels]flowCount, of labels, f *client.Flow) {
	n := all[of]
	n.add(f)
	all[of] = n
}

// bounded joins all but the limit of series with the most connections.
func bounded(in map[labels]flowCount, limit int) map[labels]flowCount {
	if len(in) <= limit {
		return in
	}
	keys := make([]labels, 0, len(in))
	for k := range in {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b labels) int {
		return cmp.Or(cmp.Compare(in[b].connections, in[a].connections), strings.Compare(a.namespace, b.namespace), strings.Compare(a.service, b.service),
			strings.Compare(a.name, b.name), strings.Compare(a.protocol, b.protocol), strings.Compare(a.endpoint, b.endpoint))
	})
	out := make(map[labels]flowCount, limit+1)
	for _, k := range keys[:limit] {
		out[k] = in[k]
	}
	var rest flowCount
	for _, k := range keys[limit:] {
		n := in[k]
		rest = flowCount{rest.connections + n.connections, rest.original + n.original, rest.reply + n.reply}
	}
	out[labels{service: others}] = rest
	return out
}
