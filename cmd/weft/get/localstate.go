package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	policystate "github.com/weft-proxy/weft/frontends/policy/localstate"
	"github.com/weft-proxy/weft/frontends/policy/localstate/statepb"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// frontend is a part of weft with a local state.
type frontend struct {
	// the subject of the state, and the kind of frontend
	about, kind string
	// the commands that run it
	start string
	// the socket's name in a separate process
	socket string
}

var (
	servicesFrontend = frontend{"services", "Service", `"weft run" or "weft services"`, localstate.SocketName}
	policyFrontend   = frontend{"network policies", "NetworkPolicy", `"weft run --network-policy" or "weft policy"`, policystate.SocketName}
)

// NoFrontendError says that a frontend does not run, and how to start it.
type NoFrontendError struct{ text string }

// Error implements error.
func (e *NoFrontendError) Error() string { return e.text }

// own returns the possible sockets of a separate frontend: beside weft's socket, or, in the chart and with
// systemd, in its own directory such as /run/weft-services.
func (f *frontend) own(socket string) []string {
	dir := filepath.Dir(socket)
	return []string{filepath.Join(dir, f.socket), filepath.Join(dir+"-"+strings.TrimSuffix(f.socket, filepath.Ext(f.socket)), f.socket)}
}

// readLocal asks a frontend for its state, on weft's socket, which "weft run" serves, or on the frontend's
// own socket.
func readLocal[T any](ctx context.Context, c *cli.Connection, of frontend, read func(ctx context.Context, conn *client.Client) (T, error)) (T, error) {
	ask := func(socket, publisher string) (answer T, err error) {
		config := client.Config{Socket: socket, Publisher: publisher, DialTimeout: -1}
		return cli.Ask(ctx, config, func(conn *client.Client) (T, error) { return read(ctx, conn) })
	}
	state, err := ask(c.Socket, c.Publisher)
	if status.Code(err) != codes.Unimplemented && !errors.Is(err, client.ErrUnavailable) {
		return state, of.explain(err)
	}
	sockets := of.own(c.Socket)
	for _, own := range sockets {
		if state, otherErr := ask(own, ""); !errors.Is(otherErr, client.ErrUnavailable) {
			return state, of.explain(otherErr)
		}
	}
	if errors.Is(err, client.ErrUnavailable) {
		return state, err
	}
	return state, &NoFrontendError{fmt.Sprintf("read %s: the weft on %s has no %s frontend, and none listens on %s: start %s", of.about, c.Socket, of.kind, strings.Join(sockets, " or "), of.start)}
}

// explain removes the code from a gRPC error.
func (f *frontend) explain(err error) error {
	if _, ok := status.FromError(err); ok && err != nil {
		return fmt.Errorf("read %s: %s", f.about, cli.Describe(err))
	}
	return err
}

// ReadServices asks the Service frontend for one Service, or for all if only is zero. The message also has
// the outcomes and the counters.
func ReadServices(ctx context.Context, c *cli.Connection, only model.Key) (model.Snapshot, *modelpb.WatchResponse, error) {
	m, err := readLocal(ctx, c, servicesFrontend, func(ctx context.Context, conn *client.Client) (*modelpb.WatchResponse, error) {
		return merged(modelpb.NewLocalStateClient(conn.Conn()).Watch(ctx, &modelpb.WatchRequest{Once: true, Namespace: only.Namespace, Name: only.Name}))
	})
	if err != nil {
		return model.Snapshot{}, nil, err
	}
	snapshot, err := model.FromProto(m.GetState())
	return snapshot, m, err
}

// ReadCandidates asks the Service frontend for all endpoints of a Service, and why some are not used.
func ReadCandidates(ctx context.Context, c *cli.Connection, key model.Key) ([]model.Candidate, error) {
	all, err := readLocal(ctx, c, servicesFrontend, func(ctx context.Context, conn *client.Client) (*modelpb.ListCandidatesResponse, error) {
		return merged(modelpb.NewLocalStateClient(conn.Conn()).ListCandidates(ctx, &modelpb.ListCandidatesRequest{Namespace: key.Namespace, Name: key.Name}))
	})
	if err != nil {
		return nil, err
	}
	out := make([]model.Candidate, len(all.GetCandidates()))
	for i, m := range all.GetCandidates() {
		if out[i], err = model.CandidateFromProto(m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// FindService asks the Service frontend for the Service with an address and port, or with a NodePort if
// addr is zero. name is the name of the Service's port. ok is false without such a Service.
func FindService(ctx context.Context, c *cli.Connection, addr netip.Addr, protocol model.Protocol, port uint16) (key model.Key, name string, ok bool, err error) {
	req := &modelpb.FindServiceRequest{Address: addr.AsSlice(), Protocol: uint32(protocol), Port: uint32(port)}
	found, err := readLocal(ctx, c, servicesFrontend, func(ctx context.Context, conn *client.Client) (*modelpb.FindServiceResponse, error) {
		found, err := modelpb.NewLocalStateClient(conn.Conn()).FindService(ctx, req)
		if status.Code(err) == codes.NotFound {
			return nil, nil //nolint:nilnil // there is none
		}
		return found, err
	})
	if err != nil || found == nil {
		return key, "", false, err
	}
	return model.Key{Namespace: found.GetService().GetNamespace(), Name: found.GetService().GetName()}, found.GetPortName(), true, nil
}

func merged[T any, M interface {
	*T
	proto.Message
}](stream grpc.ServerStreamingClient[T], err error) (M, error) {
	whole := M(new(T))
	for err == nil {
		var part *T
		if part, err = stream.Recv(); err == nil {
			proto.Merge(whole, M(part))
		}
	}
	if errors.Is(err, io.EOF) {
		return whole, nil
	}
	return nil, err
}

// streamed returns the changes of a frontend's stream. The first messages have the present state.
func streamed[T any](of frontend, open func(context.Context, grpc.ClientConnInterface) (grpc.ServerStreamingClient[T], error)) func(*cli.Connection) changes {
	return func(conn *cli.Connection) changes {
		return func(ctx context.Context, changed func()) error {
			_, err := readLocal(ctx, conn, of, func(ctx context.Context, c *client.Client) (none struct{}, _ error) {
				stream, err := open(ctx, c.Conn())
				for err == nil {
					if _, err = stream.Recv(); err == nil {
						changed()
					}
				}
				return none, err
			})
			return err
		}
	}
}

// ParseServiceName parses "NAMESPACE/NAME", or "NAME" in the namespace default.
//
// Possible errors: a *cli.UsageError.
func ParseServiceName(text string) (model.Key, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		namespace, name = "default", text
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return model.Key{}, cli.Usagef("%q is not the name of a Service: want NAMESPACE/NAME, or NAME in the namespace default", text)
	}
	return model.Key{Namespace: namespace, Name: name}, nil
}

// policyKind is a kind of the NetworkPolicy frontend. missing is the error text for an unknown name.
func policyKind[E any](part func(*statepb.WatchResponse) []E, name func(E) string, missing string, rows func([]E, time.Time) *Rows) kind[[]E] {
	return kind[[]E]{func(ctx context.Context, conn *cli.Connection, args []string) ([]E, error) {
		all, err := policyPart(part)(ctx, conn)
		if err != nil || len(args) == 0 {
			return all, err
		}
		for _, want := range []string{args[0], "default/" + args[0]} {
			named := slices.DeleteFunc(slices.Clone(all), func(e E) bool { return name(e) != want })
			if len(named) > 0 {
				return named, nil
			}
		}
		return nil, fmt.Errorf("%s: %s on this node", args[0], missing)
	}, rows, policyChanges}
}

var policyChanges = streamed(policyFrontend, func(ctx context.Context, conn grpc.ClientConnInterface) (grpc.ServerStreamingClient[statepb.WatchResponse], error) {
	return statepb.NewLocalStateClient(conn).Watch(ctx, &statepb.WatchRequest{})
})

func policyPart[E any](part func(*statepb.WatchResponse) []E) func(context.Context, *cli.Connection) ([]E, error) {
	return func(ctx context.Context, conn *cli.Connection) ([]E, error) {
		state, err := readLocal(ctx, conn, policyFrontend, readPolicyState)
		if err != nil {
			return nil, err
		}
		return part(state), nil
	}
}

// readPolicyState leaves out the members of sets.
func readPolicyState(ctx context.Context, conn *client.Client) (*statepb.WatchResponse, error) {
	return merged(statepb.NewLocalStateClient(conn.Conn()).Watch(ctx, &statepb.WatchRequest{Once: true}))
}
