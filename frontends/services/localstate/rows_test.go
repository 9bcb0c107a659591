package localstate

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

var (
	addr     = netip.MustParseAddr
	addrs    = [model.NumFamilies]netip.Addr{addr("10.96.0.1"), addr("fd00:96::1")}
	endpoint = func(at string, local bool) model.Endpoint {
		return model.Endpoint{Addr: netip.MustParseAddrPort(at), Local: local}
	}
)

// everything has each field of a Service, and endpoints in one list and in several.
func everything() *model.Service {
	here, there, third := endpoint("10.1.0.1:8080", true), endpoint("10.1.0.2:8080", false), endpoint("10.1.0.3:8080", true)
	six := endpoint("[fd00::1]:8080", false)
	web := model.Port{
		Name: "http", Protocol: model.TCP, Number: 80, NodePort: 30080, ClusterIPs: addrs,
		External: [model.NumFamilies][]model.External{
			{{Addr: addr("192.0.2.1"), LoadBalancer: true}, {Addr: addr("192.0.2.2")}, {Addr: addr("192.0.2.3"), LoadBalancer: true}},
			{{Addr: addr("2001:db8::1")}},
		},
		Backends: [model.NumFamilies]model.Backends{
			{Cluster: model.MakeEndpoints(here, there), Local: model.MakeEndpoints(here, third), Draining: model.MakeEndpoints(third)},
			{Cluster: model.MakeEndpoints(six), Draining: model.MakeEndpoints(endpoint("[fd00::2]:8080", true))},
		},
	}
	return &model.Service{
		Name: model.Key{Namespace: "shop", Name: "web"}, ClusterIPs: addrs, ExternalLocal: true, Affinity: 3 * time.Hour,
		HealthCheckNodePort: 32000, LocalReady: [model.NumFamilies]int{1, 2},
		SourceRanges: model.Prefixes{{netip.MustParsePrefix("10.0.0.0/8")}, {netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("2001:db8::/32")}},
		Ports:        []model.Port{web, {Protocol: model.SCTP, Number: 81}, {Name: "dns", Protocol: model.UDP, Number: 53}},
	}
}

// TestRoundTrip: whatever a Service can hold comes back from its row.
func TestRoundTrip(t *testing.T) {
	six := &model.Service{InternalLocal: true, ClusterIPs: [model.NumFamilies]netip.Addr{{}, addrs[model.IPv6]}, Ports: []model.Port{}}
	for _, want := range []*model.Service{everything(), six} {
		text, err := json.Marshal(NewService(want, publish.Outcome{}))
		publishtest.Must(t, err)
		var row Service
		publishtest.Must(t, json.Unmarshal(text, &row))
		got, err := row.Model()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("round trip of %s gives\n%+v, want\n%+v, error %v", text, got, want, err)
		}
	}
}

// TestBadRows: a row that no Service has is an error.
func TestBadRows(t *testing.T) {
	for _, text := range []string{
		`{"name":"a","ports":[{"protocol":"ICMP","port":1}]}`, `{"name":"a","ports":[{"protocol":"TCP","endpoints":[{"use":["cluster"]}]}]}`,
		`{"name":"a","loadBalancerSourceRanges":[""]}`,
	} {
		var row Service
		publishtest.Must(t, json.Unmarshal([]byte(text), &row))
		if got, err := row.Model(); err == nil {
			t.Errorf("%s: %+v is accepted", text, got)
		}
	}
}

// fakeSource has Service default/a.
type fakeSource struct{}

func (fakeSource) State(names ...model.Key) State {
	a := model.Key{Namespace: "default", Name: "a"}
	if names != nil && !slices.Contains(names, a) {
		return State{Snapshot: model.Snapshot{Node: model.Node{Addresses: [model.NumFamilies]netip.Addr{addr("192.0.2.1")}}}}
	}
	s := &model.Service{Name: a, Ports: []model.Port{{Protocol: model.TCP, Number: 80}}}
	return State{Snapshot: model.Snapshot{Services: []*model.Service{s}}, Outcomes: []publish.Outcome{{State: publish.InForce, Revision: 7}}}
}

func (fakeSource) Stats() model.Stats { return model.Stats{Revision: 3, ServiceEvents: 7} }

func (fakeSource) Candidates(key model.Key) ([]model.Candidate, bool) {
	return []model.Candidate{{Endpoint: endpoint("[fd00::1]:80", true), Port: "http", Protocol: model.UDP, Draining: true, Excluded: model.NotReady}}, key.Name == "a"
}

func (fakeSource) Find(at netip.Addr, protocol model.Protocol, port uint16) (key model.Key, name string, ok bool) {
	ok = protocol == model.TCP && (at == addrs[model.IPv4] && port == 80 || at == netip.Addr{} && port == 30080)
	return model.Key{Namespace: "default", Name: "a"}, "http", ok
}

// TestTables reads each table with good and bad arguments.
func TestTables(t *testing.T) {
	tables := New(fakeSource{})
	read := func(name string, arguments ...string) string {
		of := make(map[string]string)
		for i := 0; i < len(arguments); i += 2 {
			of[arguments[i]] = arguments[i+1]
		}
		for _, table := range tables.Tables() {
			if table.Name != name {
				continue
			}
			rows, err := table.Rows(of)
			if err != nil {
				return err.Error()
			}
			var out []string
			for row := range rows {
				text, err := json.Marshal(row)
				publishtest.Must(t, err)
				out = append(out, string(text))
			}
			return strings.Join(out, "\n")
		}
		return "no table"
	}
	if got := read(TableServices); !strings.Contains(got, "not all Services are known yet") {
		t.Errorf("before everything is known: %s", got)
	}
	tables.Changed(&model.Changes{})
	a := `{"namespace":"default","name":"a","state":"in force","revision":7,"clusterIPs":null,"internalTrafficPolicy":"Cluster","externalTrafficPolicy":"Cluster","ports":[{"protocol":"TCP","port":80,"endpoints":[]}]}`
	found := `{"namespace":"default","name":"a","port":"http"}`
	for i, tt := range []struct {
		got, want string
	}{
		{read(TableServices), a},
		{read(TableServices, ArgService, "default/a"), a},
		{read(TableServices, ArgService, "default/b"), "no Service default/b has rules on this node"},
		{read(TableServices, ArgService, "a"), `argument service: "a" is not NAMESPACE/NAME`},
		{read(TableEndpoints, ArgService, "default/a"), `{"address":"[fd00::1]:80","local":true,"port":"http","protocol":17,"draining":true,"excluded":"not ready"}`},
		{read(TableEndpoints, ArgService, "default/b"), "Service default/b does not exist"},
		{read(TableEndpoints), `argument service: "" is not NAMESPACE/NAME`},
		{read(TableAddresses, ArgAddress, "10.96.0.1", ArgProtocol, "tcp", ArgPort, "80"), found},
		{read(TableAddresses, ArgAddress, "::ffff:10.96.0.1", ArgProtocol, "tcp", ArgPort, "80"), found},
		{read(TableAddresses, ArgProtocol, "tcp", ArgPort, "30080"), found},
		{read(TableAddresses, ArgProtocol, "udp", ArgPort, "30080"), ""},
		{read(TableAddresses, ArgProtocol, "tcp", ArgPort, "65536"), `argument port: "65536" is not a port`},
		{read(TableModel), `{"serviceEvents":7,"sliceEvents":0,"nodeEvents":0,"serviceCIDREvents":0,"serviceChanges":0,"nodeChanges":0,"revision":3,"skipped":0,"conflicts":0,"services":0,"slices":0,"nodeAddresses":["192.0.2.1",""]}`},
	} {
		publishtest.Equal(t, fmt.Sprintf("case %d:\n\nwant", i), tt.got, tt.want)
	}
}
