package client_test

import (
	"slices"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestPackedAsText: an aggregator without the feature gets text, one with it gets the packed elements.
func TestPackedAsText(t *testing.T) {
	for _, test := range []struct {
		features []string
		want     []string
	}{{nil, []string{"192.0.2.1", "192.0.2.3"}}, {[]string{"packed"}, []string{}}} {
		f := newFake(t)
		f.features = test.features
		var packed int
		f.behave(nil, func(_ string, req *weftv1.PublishRequest) verdict {
			for _, of := range req.GetSnapshot().GetTables() {
				packed += weftv1.CountPacked(of.GetSets()[0].GetPacked())
			}
			for _, of := range req.GetPatch().GetTables() {
				packed += weftv1.CountPacked(of.GetElements()[0].GetAddPacked()) + weftv1.CountPacked(of.GetElements()[0].GetRemovePacked())
			}
			return verdict{}
		})
		of := func(keys ...string) []*weftv1.PackedElements {
			m := &weftv1.PackedElements{Count: uint32(len(keys))}
			for _, k := range keys {
				m.Keys = append(m.Keys, k...)
			}
			return []*weftv1.PackedElements{m}
		}
		fragment := &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{Family: "ip", Name: "t", Sets: []*weftv1.Set{{
			Name: "s", Type: "ipv4_addr", Packed: of("\xc0\x00\x02\x01", "\xc0\x00\x02\x02"),
		}}}}}
		c, err := client.Dial(aggregatortest.Context(t), client.Quick(client.Config{Socket: f.socket, Publisher: "tester", Text: convert.Text}))
		if err != nil {
			t.Fatal(err)
		}
		s := c.Session(client.SessionConfig{Snapshot: func(string) *weftv1.Fragment { return fragment }})
		if _, err := s.Put(aggregatortest.Context(t), fragment); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Patch(aggregatortest.Context(t), &weftv1.Patch{Fragment: "f", Tables: []*weftv1.TablePatch{{Family: "ip", Name: "t", Elements: []*weftv1.ElementPatch{{
			Set: "s", RemovePacked: of("\xc0\x00\x02\x02"), AddPacked: of("\xc0\x00\x02\x03"),
		}}}}}); err != nil {
			t.Fatal(err)
		}
		if got, want := f.keys("f"), test.want; !slices.Equal(got, want) || packed > 0 != (test.features != nil) {
			t.Errorf("with features %v the aggregator got keys %v and %d packed elements, want keys %v", test.features, got, packed, want)
		}
		if _, err := c.Plan(aggregatortest.Context(t), &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{fragment}}); err != nil {
			t.Fatal(err)
		}
		set := f.planned.GetFragments()[0].GetTables()[0].GetSets()[0]
		if as := len(set.GetElements()) > 0; as != (test.features == nil) || len(set.GetPacked()) > 0 == as {
			t.Errorf("with features %v the aggregator plans %v", test.features, set)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
