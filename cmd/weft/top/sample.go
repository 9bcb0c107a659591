package top

import (
	"context"
	"errors"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	commits = 20
	// servicesAge is long, because the list of Services can be.
	servicesAge = 10 * time.Second
)

type sample struct {
	at         time.Time
	revision   uint64
	fragments  int
	publishers []*weftv1.PublisherStatus
	commits    []*weftv1.Revision
	// why data is missing
	noCommits, noServices string
	countedAt             time.Time
	services              []servicePort
}

type sampler struct {
	conn *cli.Connection
	// index has the Services at the time read.
	index *index
	read  time.Time
}

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
		out.countedAt = time.Now()
		return ctx.Err()
	})
	return out, err
}

// connections returns why there are no counts: no Service frontend, or rules without counters.
func (s *sampler) connections(ctx context.Context, c *client.Client, out *sample) (why string, err error) {
	if s.index == nil || time.Since(s.read) > servicesAge {
		state, err := get.ReadServices(ctx, s.conn, model.Key{})
		if errors.As(err, new(*get.NoFrontendError)) {
			return "no Service frontend runs here", nil
		}
		if err != nil {
			return "", err
		}
		services, err := state.Models()
		if err != nil {
			return "", err
		}
		s.index, s.read = newIndex(services), time.Now()
	}
	ports := slices.Clone(s.index.ports)
	counted, err := s.index.count(ctx, c, ports)
	if err != nil {
		return "", err
	}
	if !counted && len(ports) > 0 {
		return "the rules do not count connections: start weft with --service-counters service", nil
	}
	out.services = ports
	return "", nil
}
