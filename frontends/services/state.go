package services

import (
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// LocalState returns the service that offers the model to readers, to be
// registered with a gRPC server.
func (f *Frontend) LocalState() *localstate.Server { return f.local }

// state is the model as a localstate.Source.
type state struct{ f *Frontend }

// State implements localstate.Source.
func (s state) State(names func() []model.Key) (model.Snapshot, model.Stats) {
	m := s.f.model
	s.f.modelMu.Lock()
	defer s.f.modelMu.Unlock()
	if names == nil {
		return m.Snapshot(), m.Stats()
	}
	return m.Select(names()), m.Stats()
}
