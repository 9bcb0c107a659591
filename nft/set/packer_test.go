package set

import (
	"fmt"
	"testing"

	"github.com/weft-proxy/weft/nft"
)

// TestPackerPacksAsSetDoes packs more elements than one string holds, and verdicts longer than
// expected.
func TestPackerPacksAsSetDoes(t *testing.T) {
	for _, m := range []nft.Map{
		{Name: "values", Type: "ipv4_addr . inet_service : ipv4_addr"},
		{Name: "verdicts", Type: "ipv4_addr . inet_service : verdict"},
		{Name: "ranges", Type: "ipv4_addr . inet_service : ipv4_addr", Flags: []string{"interval"}},
	} {
		s, err := CompileMap(nft.FamilyIP, &m)
		if err != nil {
			t.Fatal(err)
		}
		p := s.Packer(1)
		var want, got []Element
		for i := range 5000 {
			e := nft.Element{Key: fmt.Sprintf("10.0.%d.%d . 80", i>>8, i&255), Value: fmt.Sprintf("10.1.%d.%d", i>>8, i&255), Comment: fmt.Sprint(i)}
			if s.Verdict {
				e.Value = fmt.Sprintf("goto a-chain-with-a-long-name-%d", i)
			}
			a, err := s.Pack(e)
			if err != nil {
				t.Fatal(err)
			}
			b, err := p.Pack(e)
			if err != nil {
				t.Fatal(err)
			}
			want, got = append(want, a), append(got, b)
		}
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("map %s element %d is %+v, want %+v", m.Name, i, got[i], want[i])
			}
		}
		if _, err := p.Pack(nft.Element{Key: "10.0.0.1"}); err == nil {
			t.Errorf("map %s: half a key is packed", m.Name)
		}
	}
}
