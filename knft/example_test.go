package knft_test

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/knft"
)

// The function block was written for knftables.New, independently of weft.
func Example() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{Publisher: "agent"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer c.Close()
	nft, err := knft.New(c, knft.Config{Family: knftables.InetFamily, Table: "agent"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer nft.Close()
	if err := block(ctx, nft, "192.0.2.1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// block drops packets from an address.
func block(ctx context.Context, nft knftables.Interface, addr string) error {
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Add(&knftables.Set{Name: "blocked", Type: "ipv4_addr"})
	tx.Add(&knftables.Chain{
		Name: "input", Type: knftables.PtrTo(knftables.FilterType), Hook: knftables.PtrTo(knftables.InputHook), Priority: knftables.PtrTo(knftables.FilterPriority),
	})
	tx.Flush(&knftables.Chain{Name: "input"})
	tx.Add(&knftables.Rule{Chain: "input", Rule: "ip saddr @blocked counter drop", Comment: knftables.PtrTo("blocked by agent")})
	tx.Add(&knftables.Element{Set: "blocked", Key: []string{addr}})
	return nft.Run(ctx, tx)
}
