package admission

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// FuzzAdmit feeds what a hostile publisher can send: no panic, and an update or
// a rejection with violations, never both.
func FuzzAdmit(f *testing.F) {
	for _, m := range []*weftv1.PublishRequest{
		{},
		{Id: 1, Update: &weftv1.PublishRequest_Snapshot{Snapshot: &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{
			Family: "ip", Name: "t",
			Sets:   []*weftv1.Set{{Name: "s", Type: "ipv4_addr", Flags: []string{"interval", "timeout"}, Elements: []*weftv1.Element{{Key: "10.0.0.0/8", Timeout: durationpb.New(5e6)}}}},
			Maps:   []*weftv1.Set{{Name: "m", Role: weftv1.MapRole_MAP_ROLE_CONNTRACK, Typeof: "ip daddr . tcp dport : verdict", Elements: []*weftv1.Element{{Key: "10.0.0.1 . 80", Value: "jump c"}}}},
			Chains: []*weftv1.Chain{{Name: "c", Type: "nat", Hook: "prerouting", Priority: "dstnat", Rules: []*weftv1.Rule{{Text: "ip daddr . tcp dport vmap @m", Comment: "x"}}}},
		}}}}},
		{Id: 2, Update: &weftv1.PublishRequest_Snapshot{Snapshot: &weftv1.Fragment{Name: "f", Nft: "table ip t { chain c { ip saddr 10.0.0.1 drop\n}\n}"}}},
		{Id: 3, Update: &weftv1.PublishRequest_Patch{Patch: &weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{
			Family: "ip", Name: "t", DeleteSets: []string{"s"}, PutSets: []*weftv1.Set{{Name: "s", Type: "inet_service"}},
			Elements: []*weftv1.ElementPatch{{Set: "s", Remove: []string{"80"}, Add: []*weftv1.Element{{Key: "1-5"}}}},
		}}}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &weftv1.PublishRequest{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		snapshot := m.GetSnapshot() != nil
		key := desired.Key{Publisher: "p", Name: "f"}
		a := NewSnapshot(Config{}, key, nowhere{})
		if snapshot {
			a.AddFragment(m.GetSnapshot())
		} else {
			a = NewPatch(Config{}, key, nil, nowhere{})
			a.AddPatch(m.GetPatch())
		}
		u, err := a.Finish()
		var r *RejectedError
		switch {
		case err == nil && u == nil:
			t.Fatal("neither update nor rejection")
		case err != nil && (u != nil || !errors.As(err, &r) || len(r.Violations) == 0):
			t.Fatalf("update %v, error %v", u, err)
		}
		a.Declared()
	})
}
