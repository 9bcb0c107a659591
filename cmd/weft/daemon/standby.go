package daemon

import (
	"context"

	"github.com/weft-proxy/weft/aggregator/server"
)

// standBy waits until no other weft has the socket, and then calls run. If it does not
// get that far it calls release.
func standBy(ctx context.Context, cfg server.Config, run func(*server.Server) error, release func()) error {
	srv, err := server.Await(ctx, cfg)
	if err == nil {
		return run(srv)
	}
	release()
	if ctx.Err() != nil {
		return nil
	}
	return err
}
