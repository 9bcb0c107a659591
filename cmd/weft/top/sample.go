package top

import (
	"context"
	"errors"
	"fmt"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	// commits is how many commits are shown at most.
	commits = 20
	// servicesAge is for how long the list of Services is used before it is read again. It can be
	// long.
	servicesAge = 10 * time.Second
)

// sample is what is known at one time.
type sample struct {
	at         time.Time
	revision   uint64
	fragments  int
	publishers []*weftv1.PublisherStatus
	commits    []*weftv1.Revision
	// noCommits and noServices are why there are none, if that is known.
	noCommits, noServices string
	// flowsAt is when connections were counted or listed.
	flowsAt time.Time
	// counted is true if the rules count connections, and listed if those were listed.
	counted, listed bool
	services        []*servicePort
}

// sampler takes samples.
type sampler struct {
	conn *cli.Connection
	// list is true if connections are listed even if the rules count them.
	list bool
	// index finds Services by their addresses, as of read.
	index *index
	read  time.Time
}

// sample asks the aggregator, and the Service frontend.
func (s *sampler) sample(ctx context.Context) (*sample, error) {
	out := &sample{}
	err := s.conn.Do(ctx, func(c *client.Client) error {
		fragments, err := c.List(ctx)
		if err != nil {
			return err
		}
		publishers, err := c.ListPublishers(ctx)
		if err != nil {
			return err
		}
		out.at = time.Now()
		out.revision, out.fragments, out.publishers = fragments.GetRevision(), len(fragments.GetFragments()), publishers.GetPublishers()
		history, err := c.ListRevisions(ctx, &weftv1.ListRevisionsRequest{Limit: commits})
		if err != nil {
			out.noCommits = cli.Describe(err)
		}
		out.commits = history.GetRevisions()
		if out.noServices, err = s.connections(ctx, c, out); err != nil {
			out.noServices = cli.Describe(err)
		}
		out.flowsAt = time.Now()
		return ctx.Err()
	})
	return out, err
}

// connections counts the connections of each port of a Service: by what the rules have counted,
// or else by a listing. why is not empty if there are no Services here.
func (s *sampler) connections(ctx context.Context, c *client.Client, out *sample) (why string, err error) {
	if s.index == nil || time.Since(s.read) > servicesAge {
		state, _, err := get.ReadServices(ctx, s.conn, model.Key{})
		if errors.As(err, new(*get.NoFrontendError)) {
			return "no Service frontend runs here", nil
		}
		if err != nil {
			return "", err
		}
		s.index, s.read = newIndex(state.Services), time.Now()
	}
	ports := s.index.empty()
	if out.counted, err = s.index.count(ctx, c, ports); err != nil {
		return "", err
	}
	out.services, out.listed = ports, s.list || !out.counted
	if !out.listed {
		return "", nil
	}
	err = c.ListAllFlows(ctx, func(flows []client.Flow) error {
		for i := range flows {
			if n, ok := s.index.find(&flows[i]); ok {
				ports[n].add(&flows[i])
			}
		}
		return nil
	})
	if err != nil {
		out.services = nil
		return "", fmt.Errorf("connections: %w", err)
	}
	return "", nil
}
