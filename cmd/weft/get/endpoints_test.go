package get

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/localstate"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// TestEndpointRows: USE and WHY NOT are about the traffic policies of the Service, and about an
// endpoint whose slices lack the port.
func TestEndpointRows(t *testing.T) {
	here := model.Candidate{Endpoint: model.Endpoint{Addr: netip.MustParseAddrPort("10.1.0.1:8080"), Local: true}, Port: "http", Protocol: model.TCP, Cluster: true, ForLocal: true}
	away := model.Candidate{Endpoint: model.Endpoint{Addr: netip.MustParseAddrPort("10.1.0.2:8080")}, Port: "http", Protocol: model.TCP, Cluster: true}
	portless := model.Candidate{Endpoint: model.Endpoint{Addr: netip.MustParseAddrPort("10.1.0.3:0")}, Port: "http", Protocol: model.TCP, Excluded: model.NoPort, SlicePorts: "https/tcp"}
	const other = "on another node (traffic policy Local)"
	for _, tt := range []struct {
		name               string
		internal, external bool
		nodePort           uint16
		candidates         []model.Candidate
		want               []string
	}{
		{"Cluster", false, false, 0, []model.Candidate{away}, []string{"10.1.0.2:8080 cluster no -"}},
		{"internal Local", true, false, 0, []model.Candidate{here, away}, []string{"10.1.0.1:8080 local yes -", "10.1.0.2:8080 - no " + other}},
		{"internal Local, none here", true, false, 0, []model.Candidate{away}, []string{"10.1.0.2:8080 - no " + other}},
		{"internal Local with a NodePort", true, false, 30080, []model.Candidate{away}, []string{"10.1.0.2:8080 cluster no by ClusterIP: " + other}},
		{"external Local", false, true, 30080, []model.Candidate{here, away}, []string{"10.1.0.1:8080 cluster,local yes -", "10.1.0.2:8080 cluster no from outside: " + other}},
		{"external Local without an address for it", false, true, 0, []model.Candidate{away}, []string{"10.1.0.2:8080 cluster no -"}},
		{"both Local", true, true, 30080, []model.Candidate{away}, []string{"10.1.0.2:8080 cluster no " + other}},
		{"no such port", false, false, 0, []model.Candidate{portless}, []string{
			"10.1.0.3 - no no EndpointSlice has it with port http/tcp: the slices have https/tcp; compare the Service's targetPort with the names of its pods' ports",
		}},
	} {
		s := localstate.NewService(&model.Service{
			Name: model.Key{Namespace: "shop", Name: "web"}, InternalLocal: tt.internal, ExternalLocal: tt.external,
			Ports: []model.Port{{Name: "http", Protocol: model.TCP, Number: 80, NodePort: tt.nodePort}},
		}, publish.Outcome{})
		replaceEndpoints(&s, tt.candidates)
		var got []string
		for _, row := range endpointRows([]localstate.Service{s}, time.Time{}).Rows {
			got = append(got, fmt.Sprintf("%s %s %s %s", row[1], row[2], row[3], row[4]))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}
