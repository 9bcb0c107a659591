package set

import (
	"testing"

	"github.com/weft-proxy/weft/nft"
)

// BenchmarkPack is the cost of one element of the service data plane; the
// target is below 400 ns with one allocation.
func BenchmarkPack(b *testing.B) {
	for _, bench := range []struct {
		name string
		decl nft.Map
		elem nft.Element
	}{
		{
			"endpoint",
			nft.Map{Name: "endpoints", TypeOf: "ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport"},
			nft.Element{Key: "10.96.0.1 . tcp . 80 . 3", Value: "10.1.0.1 . 8080"},
		},
		{
			"service",
			nft.Map{Name: "services", Type: "ipv4_addr . inet_proto . inet_service : verdict"},
			nft.Element{Key: "10.96.0.1 . tcp . 80", Value: "goto pick-3", Comment: "default/web:http"},
		},
		{
			"interval",
			nft.Map{Name: "ranges", Type: "ipv4_addr . inet_service : mark", Flags: []string{"interval"}},
			nft.Element{Key: "10.0.0.0/8 . 1024-2048", Value: "0x1"},
		},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s, err := CompileMap(nft.FamilyIP, &bench.decl)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Pack(bench.elem); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bench.name+"/batch", func(b *testing.B) {
			s, err := CompileMap(nft.FamilyIP, &bench.decl)
			if err != nil {
				b.Fatal(err)
			}
			p := s.Packer(b.N)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Pack(bench.elem); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
