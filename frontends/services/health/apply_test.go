package health

import (
	"net/netip"
	"testing"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// TestApplyLooksOnlyWherePortsDiffer: the number of endpoints changes with every
// commit, and who listens where does not.
func TestApplyLooksOnlyWherePortsDiffer(t *testing.T) {
	s := NewServers(ServersConfig{})
	other := set("web", 30080, 1)
	other.New.ClusterIPs[model.IPv6] = netip.Addr{}
	for _, tt := range []struct {
		name   string
		change []model.Change
		node   *model.Node
		looks  bool
	}{
		{"one comes", []model.Change{set("web", 30080, 1)}, nil, true},
		{"other endpoints", []model.Change{set("web", 30080, 7)}, nil, false},
		{"another Service without a port", []model.Change{set("none", 0, 7)}, nil, false},
		{"it goes", []model.Change{gone("none")}, nil, false},
		{"another port", []model.Change{set("web", 30081, 7)}, nil, true},
		{"another family", []model.Change{other}, nil, true},
		{"the node", nil, node, true},
	} {
		s.Apply(tt.change, tt.node)
		looks := false
		select {
		case <-s.nudge:
			looks = true
		default:
		}
		if looks != tt.looks {
			t.Errorf("%s: looks at the ports: %v, want %v", tt.name, looks, tt.looks)
		}
	}
}
