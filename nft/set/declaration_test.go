package set

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft"
)

func TestSetDeclaration(t *testing.T) {
	for _, in := range []nft.Set{
		{Name: "plain", Type: "ipv4_addr"},
		{Name: "concat", Type: "ipv4_addr . inet_proto . inet_service", Flags: []string{"interval"}, Size: 100, Comment: "who"},
		{Name: "dyn", Type: "ipv6_addr", Flags: []string{"timeout", "dynamic"}, Timeout: time.Minute, GCInterval: time.Second},
		{Name: "counted", Type: "ipv4_addr", Flags: []string{"dynamic"}, Stateful: []string{"counter", "limit rate 5/second"}},
		{Name: "memory", Type: "mark", Policy: "memory"},
		{Name: "vmap", Type: "inet_service : verdict"},
		{Name: "nat", Type: "ipv4_addr . inet_service : ipv4_addr . inet_service"},
		{Name: "ranges", Type: "ipv4_addr : interval ipv4_addr"},
	} {
		in.Name = "s"
		s, err := compileEither(nft.FamilyIP, in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in, s.Declaration()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in.Name, diff)
		}
	}
}
