package localstate

import (
	"errors"
	"iter"
	"sync/atomic"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish"
)

const (
	// TablePods has the local pods with an address of their own.
	TablePods = "pods"
	// TablePolicies has the policies of these pods.
	TablePolicies = "policies"
	// TableNode has one Node.
	TableNode = "node"
)

// State is the state that a node enforces.
type State struct {
	Node     model.Node
	Pods     []PodState
	Policies []PolicyState
	Sets     []model.SetState
	Stats    model.Stats
}

// PodState is a pod of this node.
type PodState struct {
	*model.Pod
	Outcome publish.Outcome
}

// PolicyState is a policy that applies to pods of this node.
type PolicyState struct {
	model.PolicyState
	Outcome publish.Outcome
}

// Source is the state to serve.
type Source interface {
	// State returns pods and sets sorted, and policies in the order of decision.
	State() State
}

// Tables are the tables of a Source.
type Tables struct {
	source  Source
	dropLog int
	changes client.Changes
	known   atomic.Bool // set by the first Changed
}

// New returns the tables of a source; dropLog is in packets per second.
func New(source Source, dropLog int) *Tables { return &Tables{source: source, dropLog: dropLog} }

// Changed tells readers about a refresh, first when all objects are known.
func (t *Tables) Changed(c *model.Changes) {
	if !t.known.Swap(true) || !c.Empty() {
		t.changes.Notify()
	}
}

// OutcomesChanged tells readers about outcomes.
func (t *Tables) OutcomesChanged() { t.changes.Notify() }

// Tables returns the tables for client.ServeTables.
func (t *Tables) Tables() []client.Table {
	return []client.Table{
		table(t, TablePods, (*State).pods), table(t, TablePolicies, (*State).policies),
		table(t, TableNode, func(s *State) []Node {
			return []Node{{
				Name: s.Node.Name, Addresses: s.Node.Addresses, PodCIDRs: s.Node.PodCIDRs, DropLog: t.dropLog,
				Pods: s.Stats.Pods, Namespaces: s.Stats.Namespaces, Policies: s.Stats.Policies,
			}}
		}),
	}
}

func table[T any](t *Tables, name string, rows func(*State) []T) client.Table {
	return client.Table{Name: name, Changes: &t.changes, Rows: func(map[string]string) (iter.Seq[any], error) {
		if !t.known.Load() {
			return nil, errors.New("not all policies are known yet: the source has not delivered everything that exists")
		}
		state := t.source.State()
		return func(yield func(any) bool) {
			for _, row := range rows(&state) {
				if !yield(row) {
					return
				}
			}
		}, nil
	}}
}
