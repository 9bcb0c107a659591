package localstate

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source/network"
)

const (
	// a Service for each Service with rules, or only for ArgService
	TableServices = "services"
	// a model.Candidate for each endpoint of the Service of ArgService
	TableEndpoints = "endpoints"
	// an Address for the Service with ArgAddress, ArgProtocol and ArgPort
	TableAddresses = "addresses"
	// one Model
	TableModel = "model"
)

const (
	// ArgService is "namespace/name".
	ArgService = "service"
	// ArgAddress is empty for a NodePort.
	ArgAddress  = "address"
	ArgProtocol = "protocol"
	ArgPort     = "port"
)

var errUnknown = errors.New("not all Services are known yet: the source has not delivered everything that exists")

// State is a snapshot with outcomes.
type State struct {
	model.Snapshot
	// one per Service of the snapshot
	Outcomes []publish.Outcome
}

// Source provides the state.
type Source interface {
	// State returns the named Services, or all without names. Unknown names are ignored.
	State(names ...model.Key) State
	Stats() model.Stats
	Candidates(key model.Key) (all []model.Candidate, ok bool)
	Find(addr netip.Addr, protocol model.Protocol, port uint16) (key model.Key, name string, ok bool)
}

// Tables are the tables of a Source.
type Tables struct {
	source  Source
	changes client.Changes
	// set by the first Changed
	known atomic.Bool
}

// New returns the tables of a source.
func New(source Source) *Tables { return &Tables{source: source} }

// Changed tells readers about a refresh. The first call means that everything is known.
func (t *Tables) Changed(c *model.Changes) {
	if !t.known.Swap(true) || !c.Empty() {
		t.changes.Notify()
	}
}

// OutcomesChanged tells readers about changed outcomes.
func (t *Tables) OutcomesChanged() { t.changes.Notify() }

// Tables returns the tables for client.ServeTables.
func (t *Tables) Tables() []client.Table {
	all := []client.Table{
		{Name: TableServices, Rows: t.services}, {Name: TableEndpoints, Rows: t.endpoints},
		{Name: TableAddresses, Rows: t.addresses}, {Name: TableModel, Rows: t.model},
	}
	for i := range all {
		rows := all[i].Rows
		all[i].Changes = &t.changes
		all[i].Rows = func(arguments map[string]string) (iter.Seq[any], error) {
			if !t.known.Load() {
				return nil, errUnknown
			}
			return rows(arguments)
		}
	}
	return all
}

func (t *Tables) services(arguments map[string]string) (iter.Seq[any], error) {
	var state State
	if arguments[ArgService] == "" {
		state = t.source.State()
	} else {
		key, err := parseKey(arguments)
		if err != nil {
			return nil, err
		}
		if state = t.source.State(key); len(state.Services) == 0 {
			return nil, fmt.Errorf("no Service %s has rules on this node", key)
		}
	}
	return func(yield func(any) bool) {
		for i, s := range state.Services {
			if !yield(NewService(s, state.Outcomes[i])) {
				return
			}
		}
	}, nil
}

func (t *Tables) endpoints(arguments map[string]string) (iter.Seq[any], error) {
	key, err := parseKey(arguments)
	if err != nil {
		return nil, err
	}
	all, ok := t.source.Candidates(key)
	if !ok {
		return nil, fmt.Errorf("Service %s does not exist", key)
	}
	return func(yield func(any) bool) {
		for i := range all {
			if !yield(&all[i]) {
				return
			}
		}
	}, nil
}

func (t *Tables) addresses(arguments map[string]string) (iter.Seq[any], error) {
	var addr netip.Addr
	if text := arguments[ArgAddress]; text != "" {
		var err error
		if addr, err = netip.ParseAddr(text); err != nil {
			return nil, err
		}
	}
	protocol, err := network.ParseProtocol(corev1.Protocol(strings.ToUpper(arguments[ArgProtocol])))
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(arguments[ArgPort], 10, 16)
	if err != nil {
		return nil, fmt.Errorf("argument %s: %q is not a port", ArgPort, arguments[ArgPort])
	}
	key, name, ok := t.source.Find(addr.Unmap(), protocol, uint16(port))
	return func(yield func(any) bool) {
		if ok {
			yield(Address{key.Namespace, key.Name, name})
		}
	}, nil
}

func (t *Tables) model(map[string]string) (iter.Seq[any], error) {
	// The empty key selects no Service.
	row := Model{t.source.Stats(), t.source.State(model.Key{}).Node.Addresses}
	return func(yield func(any) bool) { yield(row) }, nil
}

func parseKey(arguments map[string]string) (model.Key, error) {
	namespace, name, ok := strings.Cut(arguments[ArgService], "/")
	if !ok || namespace == "" || name == "" {
		return model.Key{}, fmt.Errorf("argument %s: %q is not NAMESPACE/NAME", ArgService, arguments[ArgService])
	}
	return model.Key{Namespace: namespace, Name: name}, nil
}
