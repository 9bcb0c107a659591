package desired_test

import (
	"reflect"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func TestRecord(t *testing.T) {
	h := newHarness(t)
	one := in(ipWeft, endpointMap("e"), addrSet("s"), regular("d"), regular("c", rule("a", "@s", "d"), rule("b", "@e", "@s")))
	one.Comment = "hello"
	h.commit(snapshot(services, 0, one, in(ipDeny, addrSet("x"))), snapshot(policy, -3, in(ipWeft, addrSet("s", member("10.0.0.1")))))
	want := desired.Record{Fragments: []desired.FragmentRecord{
		{Publisher: "policy", Name: "web", Priority: -3, Tables: []desired.TableRecord{{Family: "ip", Name: "weft", Sets: []desired.SetRecord{{Name: "s"}}}}},
		{Publisher: "services", Name: "all", Tables: []desired.TableRecord{
			{Family: "ip", Name: "deny", Sets: []desired.SetRecord{{Name: "x"}}},
			{Family: "ip", Name: "weft", Comment: "hello",
				Chains: []desired.ChainRecord{{Name: "c", Sets: []string{"e", "s"}, Chains: []string{"d"}}, {Name: "d"}},
				Sets:   []desired.SetRecord{{Name: "e", Conntrack: true}, {Name: "s"}}},
		}},
	}}
	if got := views.Record(h.State); !reflect.DeepEqual(got, want) {
		t.Errorf("record:\n%+v\nwant:\n%+v", got, want)
	}
}

func TestRecordVersion(t *testing.T) {
	h := newHarness(t)
	h.commit(snapshot(services, 0, in(ipWeft, endpointMap("e"), regular("c", rule("a")))))
	steps := []struct {
		name    string
		update  *desired.Update
		changes bool
	}{
		{"elements", patch(services, in(ipWeft, desired.Elements{Set: "e", Add: slotsOf("10.96.0.1", udp, "10.1.0.1:53")})), false},
		{"rules", patch(services, in(ipWeft, regular("c", rule("b")))), false},
		{"references", patch(services, in(ipWeft, regular("c", rule("b", "@e")))), true},
		{"sets", patch(services, in(ipWeft, addrSet("s"))), true},
		{"priority", snapshot(services, 1, in(ipWeft, endpointMap("e"))), true},
		{"conntrack", snapshot(services, 1, in(ipWeft, desired.Set{Decl: endpointMap("e").Decl, Elements: []nftset.Element{}})), true},
		{"withdrawal", snapshot(services, 0), true},
	}
	for _, st := range steps {
		before := h.RecordVersion()
		h.commit(st.update)
		if changed := h.RecordVersion() != before; changed != st.changes {
			t.Errorf("%s: version changed %t, want %t", st.name, changed, st.changes)
		}
	}
}
