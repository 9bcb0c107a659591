package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func content(ctx context.Context, c *client.Client, name string) (*weftv1.Fragment, error) {
	got, err := c.Get(ctx, "", name)
	if errors.Is(err, client.ErrNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	return got.GetFragment(), nil
}

// outcome uses kubectl's words. The aggregator prints both contents, so that equal content is equal
// in any notation.
func outcome(before, after *weftv1.Fragment) string {
	switch {
	case proto.Equal(before, after) && (before == nil) == (after == nil):
		return "unchanged"
	case before == nil:
		return "created"
	case after == nil:
		// Without rules the fragment is withdrawn.
		return "deleted"
	default:
		return "configured"
	}
}

// each continues after an error, unless the aggregator is gone. The final error names the failures.
func each(ctx context.Context, stderr io.Writer, done string, names []string, do func(i int) error) error {
	var failed []string
	for i, name := range names {
		err := do(i)
		if err == nil {
			continue
		}
		fmt.Fprintf(stderr, "weft: %s: %s\n", name, cli.Describe(err))
		failed = append(failed, name)
		if ctx.Err() != nil || errors.Is(err, client.ErrUnavailable) {
			failed = append(failed, names[i+1:]...)
			break
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%s %d of %d, and not %s", done, len(names)-len(failed), len(names), cli.Some(failed))
}
