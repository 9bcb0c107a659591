package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// readLocalState asks the Service frontend for the state of one Service, or of all if
// only is zero. It asks on weft's socket, on which "weft run" serves it, and then on the
// socket of "weft services" in the same directory.
func readLocalState(ctx context.Context, c *cli.Connection, only model.Key) (*stateView, error) {
	state, err := readState(ctx, c.Socket, c.Publisher, only)
	if status.Code(err) != codes.Unimplemented && !errors.Is(err, client.ErrUnavailable) {
		return state, explainState(err)
	}
	own := filepath.Join(filepath.Dir(c.Socket), localstate.SocketName)
	if state, otherErr := readState(ctx, own, "", only); !errors.Is(otherErr, client.ErrUnavailable) {
		return state, explainState(otherErr)
	}
	if errors.Is(err, client.ErrUnavailable) {
		return nil, err
	}
	return nil, fmt.Errorf("read services: the weft on %s has no Service frontend, and none listens on %s: start \"weft run\" or \"weft services\"", c.Socket, own)
}

// explainState returns the message of a gRPC error without its code.
func explainState(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return fmt.Errorf("read services: %s", s.Message())
	}
	return err
}

// readState reads the state from one socket.
func readState(ctx context.Context, socket, publisher string, only model.Key) (*stateView, error) {
	conn, err := client.Dial(ctx, client.Config{Socket: socket, Publisher: publisher, DialTimeout: -1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	stream, err := modelpb.NewLocalStateClient(conn.Conn()).Watch(ctx, &modelpb.WatchRequest{Once: true, Namespace: only.Namespace, Name: only.Name})
	if err != nil {
		return nil, err
	}
	whole := &modelpb.WatchResponse{State: &modelpb.Model{}}
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			snapshot, err := model.FromProto(whole.GetState())
			return viewState(snapshot, whole.GetCounters()), err
		case err != nil:
			return nil, err
		}
		proto.Merge(whole, m)
	}
}

// parseServiceName parses "NAMESPACE/NAME", or "NAME" in the namespace default.
func parseServiceName(text string) (model.Key, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		namespace, name = "default", text
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return model.Key{}, cli.Usagef("%q is not the name of a Service: want NAMESPACE/NAME, or NAME in the namespace default", text)
	}
	return model.Key{Namespace: namespace, Name: name}, nil
}
