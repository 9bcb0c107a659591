package get

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/policy"
	policystate "github.com/weft-proxy/weft/frontends/policy/localstate"
	"github.com/weft-proxy/weft/frontends/services"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// AggregatorPublisher is the publisher of the aggregator's conditions.
const AggregatorPublisher = "aggregator"

type frontend struct {
	publisher, kind string
	// the commands that run it
	start string
}

var (
	servicesFrontend = frontend{services.Publisher, "Service", `"weft run" or "weft services"`}
	policyFrontend   = frontend{policy.Publisher, "NetworkPolicy", `"weft run --network-policy" or "weft policy"`}
)

// NoFrontendError says how to start a frontend.
type NoFrontendError struct{ text string }

// Error implements error.
func (e *NoFrontendError) Error() string { return e.text }

func readTable[T any](ctx context.Context, c *cli.Connection, of frontend, table string, arguments map[string]string) (rows []T, err error) {
	config := client.Config{Socket: c.Socket, Publisher: c.Publisher, DialTimeout: -1}
	rows, err = cli.Ask(ctx, config, func(conn *client.Client) ([]T, error) {
		return client.ReadRows[T](ctx, conn, of.publisher, table, arguments)
	})
	return rows, of.explain(c, table, err)
}

func (f *frontend) explain(c *cli.Connection, table string, err error) error {
	switch {
	case errors.Is(err, client.ErrNotServed):
		return &NoFrontendError{fmt.Sprintf("read %s: the weft on %s has no %s frontend: start %s", table, c.Socket, f.kind, f.start)}
	case errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("read %s: the weft on %s is older than this command: restart it with this version", table, c.Socket)
	default:
		return err
	}
}

func watched(of frontend, table string) func(*cli.Connection) changes {
	return func(c *cli.Connection) changes {
		return func(ctx context.Context, changed func()) error {
			err := c.Do(ctx, func(conn *client.Client) error { return conn.WatchTable(ctx, of.publisher, table, changed) })
			return of.explain(c, table, err)
		}
	}
}

// ServiceState is the Service frontend's state.
type ServiceState struct {
	Revision uint64               `json:"revision"`
	Services []localstate.Service `json:"services"`

	Model localstate.Model `json:"-"`
}

// Models returns the Services.
func (s *ServiceState) Models() ([]*model.Service, error) {
	out := make([]*model.Service, len(s.Services))
	for i := range s.Services {
		var err error
		if out[i], err = s.Services[i].Model(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ReadServices reads one Service, or all if only is zero.
func ReadServices(ctx context.Context, c *cli.Connection, only model.Key) (*ServiceState, error) {
	arguments := map[string]string{}
	if only != (model.Key{}) {
		arguments[localstate.ArgService] = only.String()
	}
	rows, err := readTable[localstate.Service](ctx, c, servicesFrontend, localstate.TableServices, arguments)
	if err != nil {
		return nil, err
	}
	of, err := readTable[localstate.Model](ctx, c, servicesFrontend, localstate.TableModel, nil)
	if err != nil {
		return nil, err
	}
	if len(of) != 1 {
		return nil, fmt.Errorf("read %s: %d rows, want 1", localstate.TableModel, len(of))
	}
	return &ServiceState{of[0].Revision, append([]localstate.Service{}, rows...), of[0]}, nil
}

// ReadCandidates reads all endpoints of a Service, and why some are not used.
func ReadCandidates(ctx context.Context, c *cli.Connection, key model.Key) ([]model.Candidate, error) {
	return readTable[model.Candidate](ctx, c, servicesFrontend, localstate.TableEndpoints, map[string]string{localstate.ArgService: key.String()})
}

// FindService reads the Service with an address and port, or with a NodePort if addr is zero; name
// is the port's.
func FindService(ctx context.Context, c *cli.Connection, addr netip.Addr, protocol model.Protocol, port uint16) (key model.Key, name string, ok bool, err error) {
	arguments := map[string]string{localstate.ArgProtocol: protocol.String(), localstate.ArgPort: strconv.Itoa(int(port))}
	if addr.IsValid() {
		arguments[localstate.ArgAddress] = addr.String()
	}
	found, err := readTable[localstate.Address](ctx, c, servicesFrontend, localstate.TableAddresses, arguments)
	if err != nil || len(found) == 0 {
		return key, "", false, err
	}
	return model.Key{Namespace: found[0].Namespace, Name: found[0].Name}, found[0].Port, true, nil
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

// policyKind is a table of the NetworkPolicy frontend. missing is the error for an unknown name.
func policyKind[E any](table string, name func(E) string, missing string, rows func([]E, time.Time) *Rows) kind[[]E] {
	return kind[[]E]{func(ctx context.Context, conn *cli.Connection, args []string) ([]E, error) {
		all, err := readTable[E](ctx, conn, policyFrontend, table, nil)
		if err != nil || len(args) == 0 {
			return append([]E{}, all...), err
		}
		for _, want := range []string{args[0], "default/" + args[0]} {
			named := slices.DeleteFunc(slices.Clone(all), func(e E) bool { return name(e) != want })
			if len(named) > 0 {
				return named, nil
			}
		}
		return nil, fmt.Errorf("%s: %s on this node", args[0], missing)
	}, rows, watched(policyFrontend, table)}
}

// readDropLog returns the limit of the drop log in packets a second.
func readDropLog(ctx context.Context, c *cli.Connection) (int, error) {
	node, err := readTable[policystate.Node](ctx, c, policyFrontend, policystate.TableNode, nil)
	if err != nil || len(node) == 0 {
		return 0, err
	}
	return node[0].DropLog, nil
}
