package client

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Text returns a function for the requests of one stream, in their order, that replaces packed elements by
// text. The function does not change its argument.
type Text func() func(*weftv1.PublishRequest) (*weftv1.PublishRequest, error)

// text returns nil if the aggregator reads packed elements, or the caller publishes only text.
func (c *Client) text(ctx context.Context) (func(*weftv1.PublishRequest) (*weftv1.PublishRequest, error), error) {
	if c.cfg.Text == nil || c.cfg.Local != nil {
		return nil, nil //nolint:nilnil // see above
	}
	info, err := c.inspect.GetInfo(ctx, &weftv1.GetInfoRequest{})
	if err != nil || slices.Contains(info.GetFeatures(), "packed") {
		return nil, err
	}
	return c.cfg.Text(), nil
}

func planText(text func(*weftv1.PublishRequest) (*weftv1.PublishRequest, error), req *weftv1.PlanRequest) (*weftv1.PlanRequest, error) {
	req = proto.CloneOf(req)
	for i, f := range req.GetFragments() {
		snapshot, err := text(&weftv1.PublishRequest{Update: &weftv1.PublishRequest_Snapshot{Snapshot: f}})
		if err != nil {
			return nil, err
		}
		req.Fragments[i] = snapshot.GetSnapshot()
	}
	return req, nil
}
