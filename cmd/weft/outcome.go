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

// content returns the committed content of a fragment of the caller, or nil if there is none.
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

// outcome returns, in the words of kubectl, how a fragment has changed between its content
// before an update and after it. The aggregator prints both, so that equal content is equal
// whatever the file looks like.
func outcome(before, after *weftv1.Fragment) string {
	switch {
	case proto.Equal(before, after) && (before == nil) == (after == nil):
		return "unchanged"
	case before == nil:
		return "created"
	case after == nil:
		// A file without rules withdraws the fragment.
		return "deleted"
	default:
		return "configured"
	}
}

// each calls do for each of several files or fragments, by their names. It goes on after an
// error, reports each on stderr, and says at the end which were done and which were not. It
// ends early if the aggregator is gone.
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
