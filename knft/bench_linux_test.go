package knft_test

import (
	"fmt"
	"testing"

	"golang.org/x/time/rate"
	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/knft"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

func BenchmarkReplaceElement(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			nfttest.Require(b, nfttest.Namespaces)
			d := startDaemon(b, nfttest.New(b), aggregator.Config{Rate: rate.Inf})
			nft, err := knft.New(d.Dial(b, "agent"), knft.Config{Family: knftables.IPv4Family, Table: "t"})
			if err != nil {
				b.Fatal(err)
			}
			defer nft.Close()
			element := func(i, port int) *knftables.Element {
				return &knftables.Element{Map: "m", Key: []string{fmt.Sprintf("10.%d.%d.1", i/250, i%250)}, Value: []string{fmt.Sprint(port)}}
			}
			ctx := b.Context()
			tx := nft.NewTransaction()
			tx.Add(&knftables.Table{})
			tx.Add(&knftables.Map{Name: "m", Type: "ipv4_addr : inet_service"})
			for i := range n {
				tx.Add(element(i, 80))
			}
			if err := nft.Run(ctx, tx); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			port := 80
			for b.Loop() {
				tx := nft.NewTransaction()
				tx.Delete(element(7, port))
				port = 161 - port
				tx.Add(element(7, port))
				if err := nft.Run(ctx, tx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
