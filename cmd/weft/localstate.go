package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// localState is what the Service frontend of this node has decided.
type localState struct {
	model.Snapshot
	counters *modelpb.Counters
}

// readLocalState asks the Service frontend for its state, of one Service or all:
// on weft's socket, where "weft run" offers it, or else on the one beside it that
// "weft services" has.
func (c *connection) readLocalState(ctx context.Context, only *model.Key) (*localState, error) {
	state, err := readState(ctx, c.socket, c.publisher, only)
	if status.Code(err) != codes.Unimplemented && !errors.Is(err, client.ErrUnavailable) {
		return state, explainState(err)
	}
	own := filepath.Join(filepath.Dir(c.socket), localstate.SocketName)
	if state, otherErr := readState(ctx, own, "", only); !errors.Is(otherErr, client.ErrUnavailable) {
		return state, explainState(otherErr)
	}
	if errors.Is(err, client.ErrUnavailable) {
		return nil, err
	}
	return nil, fmt.Errorf("read services: the weft on %s has no Service frontend, and there is none on %s: start \"weft run\" or \"weft services\"", c.socket, own)
}

// explainState words the errors of the service.
func explainState(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return fmt.Errorf("read services: %s", s.Message())
	}
	return err
}

func readState(ctx context.Context, socket, publisher string, only *model.Key) (*localState, error) {
	conn, err := client.Dial(ctx, client.Config{Socket: socket, Publisher: publisher, DialTimeout: -1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	req := &modelpb.WatchRequest{Once: true}
	if only != nil {
		req.Namespace, req.Name = only.Namespace, only.Name
	}
	stream, err := modelpb.NewLocalStateClient(conn.Conn()).Watch(ctx, req)
	if err != nil {
		return nil, err
	}
	out := &localState{}
	all := &modelpb.Model{}
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			out.Snapshot, err = model.FromProto(all)
			return out, err
		case err != nil:
			return nil, err
		}
		services := append(all.GetServices(), m.GetState().GetServices()...)
		if m.GetState().GetNode() != nil {
			all = m.GetState()
		}
		all.Services, all.Revision = services, m.GetState().GetRevision()
		if m.GetCounters() != nil {
			out.counters = m.GetCounters()
		}
	}
}

// parseServiceName reads "NAMESPACE/NAME", or a name in the namespace default.
func parseServiceName(text string) (model.Key, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		namespace, name = "default", text
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return model.Key{}, usage("%q is not the name of a Service: want NAMESPACE/NAME, or NAME in the namespace default", text)
	}
	return model.Key{Namespace: namespace, Name: name}, nil
}

// serviceNames returns the names of all Services, for completion.
func (c *connection) serviceNames(ctx context.Context) []string {
	state, err := c.readLocalState(ctx, nil)
	if err != nil {
		return nil
	}
	out := make([]string, len(state.Services))
	for i, s := range state.Services {
		out[i] = s.Name.String()
	}
	return out
}
