package localstate

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// The generators of everything that a snapshot can hold.

func drawAddr(f model.Family) *rapid.Generator[netip.Addr] {
	return rapid.Custom(func(t *rapid.T) netip.Addr {
		if f == model.IPv4 {
			return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "bytes")))
		}
		b := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
		b[0] |= 0x20
		return netip.AddrFrom16(b)
	})
}

func drawAddrs(t *rapid.T) (out [model.NumFamilies]netip.Addr) {
	for f := range out {
		if rapid.Bool().Draw(t, "address") {
			out[f] = drawAddr(model.Family(f)).Draw(t, "addr")
		}
	}
	return out
}

// listOf is a list that is nil where it is empty, as the model has it.
func listOf[T any](t *rapid.T, label string, one func(*rapid.T) T) (out []T) {
	for range rapid.IntRange(0, 3).Draw(t, label) {
		out = append(out, one(t))
	}
	return out
}

func drawPrefixes(t *rapid.T) (out model.Prefixes) {
	for f := range out {
		out[f] = listOf(t, "prefixes", func(t *rapid.T) netip.Prefix {
			a := drawAddr(model.Family(f)).Draw(t, "addr")
			return netip.PrefixFrom(a, rapid.IntRange(3, a.BitLen()).Draw(t, "bits")).Masked()
		})
	}
	return out
}

func drawEndpoints(t *rapid.T, f model.Family) model.Endpoints {
	return model.MakeEndpoints(listOf(t, "endpoints", func(t *rapid.T) model.Endpoint {
		return model.Endpoint{
			Addr:  netip.AddrPortFrom(drawAddr(f).Draw(t, "addr"), rapid.Uint16Min(1).Draw(t, "port")),
			Local: rapid.Bool().Draw(t, "local"),
		}
	})...)
}

func drawPort(t *rapid.T) model.Port {
	p := model.Port{
		Name: rapid.StringN(0, 5, 20).Draw(t, "name"), Protocol: rapid.SampledFrom([]model.Protocol{model.TCP, model.UDP, model.SCTP}).Draw(t, "protocol"),
		Number: rapid.Uint16Min(1).Draw(t, "number"), NodePort: rapid.Uint16().Draw(t, "nodePort"), ClusterIPs: drawAddrs(t),
	}
	for f := range model.NumFamilies {
		p.External[f] = listOf(t, "external", func(t *rapid.T) model.External {
			return model.External{Addr: drawAddr(f).Draw(t, "addr"), LoadBalancer: rapid.Bool().Draw(t, "lb")}
		})
		slices.SortFunc(p.External[f], func(a, b model.External) int { return a.Addr.Compare(b.Addr) })
		p.External[f] = slices.CompactFunc(p.External[f], func(a, b model.External) bool { return a.Addr == b.Addr })
		p.Backends[f] = model.Backends{Cluster: drawEndpoints(t, f), Local: drawEndpoints(t, f), Draining: drawEndpoints(t, f)}
	}
	return p
}

func drawService(t *rapid.T) *model.Service {
	s := &model.Service{
		Name:       model.Key{Namespace: rapid.StringN(0, 5, 20).Draw(t, "namespace"), Name: rapid.StringN(0, 5, 20).Draw(t, "name")},
		ClusterIPs: drawAddrs(t), InternalLocal: rapid.Bool().Draw(t, "internal"), ExternalLocal: rapid.Bool().Draw(t, "external"),
		Affinity:     time.Duration(rapid.IntRange(0, 1<<31-1).Draw(t, "affinity")) * time.Second,
		SourceRanges: drawPrefixes(t), HealthCheckNodePort: rapid.Uint16().Draw(t, "health"), LocalReady: [model.NumFamilies]int{rapid.IntRange(0, 1<<20).Draw(t, "ready"), rapid.IntRange(0, 1<<20).Draw(t, "ready of IPv6")},
		Ports: append([]model.Port{}, listOf(t, "ports", drawPort)...),
	}
	if rapid.Bool().Draw(t, "dated") {
		s.Created = time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).UTC()
	}
	return s
}

// TestRoundTrip: whatever a Service can hold comes back from its row, except its creation.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawService(t)
		want.Created = time.Time{}
		if want.HealthCheckNodePort == 0 {
			want.LocalReady = [model.NumFamilies]int{}
		}
		text, err := json.Marshal(NewService(want, publish.Outcome{}))
		var row Service
		if err == nil {
			err = json.Unmarshal(text, &row)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := row.Model()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("round trip of %s gives\n%+v, want\n%+v, error %v", text, got, want, err)
		}
	})
}

// TestBadRows: a row that no Service has is an error.
func TestBadRows(t *testing.T) {
	for _, text := range []string{
		`{"name":"a","ports":[{"protocol":"ICMP","port":1}]}`, `{"name":"a","ports":[{"protocol":"TCP","endpoints":[{"use":["cluster"]}]}]}`,
		`{"name":"a","loadBalancerSourceRanges":[""]}`,
	} {
		var row Service
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			t.Fatal(err)
		}
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
		return State{Snapshot: model.Snapshot{Node: model.Node{Addresses: [model.NumFamilies]netip.Addr{netip.MustParseAddr("192.0.2.1")}}}}
	}
	s := &model.Service{Name: a, Ports: []model.Port{{Protocol: model.TCP, Number: 80}}}
	return State{Snapshot: model.Snapshot{Services: []*model.Service{s}}, Outcomes: []publish.Outcome{{State: publish.InForce, Revision: 7}}}
}

func (fakeSource) Stats() model.Stats { return model.Stats{Revision: 3, ServiceEvents: 7} }

func (fakeSource) Candidates(key model.Key) ([]model.Candidate, bool) {
	e := model.Endpoint{Addr: netip.MustParseAddrPort("[fd00::1]:80"), Local: true}
	return []model.Candidate{{Endpoint: e, Port: "http", Protocol: model.UDP, Draining: true, Excluded: model.NotReady}}, key.Name == "a"
}

func (fakeSource) Find(addr netip.Addr, protocol model.Protocol, port uint16) (key model.Key, name string, ok bool) {
	ok = protocol == model.TCP && (addr == netip.MustParseAddr("10.96.0.1") && port == 80 || addr == netip.Addr{} && port == 30080)
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
				if err != nil {
					t.Fatal(err)
				}
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
		if tt.got != tt.want {
			t.Errorf("case %d:\n%s\nwant\n%s", i, tt.got, tt.want)
		}
	}
}
