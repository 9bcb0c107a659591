package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// A fragment that is applied once. To change it, apply it again as a whole: what is
// the same costs nothing.
func ExampleClient_Apply() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Publisher: "deny"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	revision, err := c.Apply(ctx, &weftv1.Fragment{Name: "main", Nft: `
		table inet deny {
			set blocked { type ipv4_addr; flags interval; elements = { 192.0.2.0/24 } }
			chain input {
				type filter hook input priority filter; policy accept;
				ip saddr @blocked counter drop
			}
		}`})
	var rejected *client.RejectedError
	switch {
	case errors.As(err, &rejected):
		log.Fatalf("%+v", rejected) // every violation, with a caret under the token
	case errors.Is(err, client.ErrUnavailable):
		log.Fatal("no aggregator: try again later: ", err)
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println("committed", revision)
}

// A publisher that stays: it puts its list whenever it has changed, and the session
// sends what is different. It reconnects by itself.
func ExampleSession() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := client.Dial(ctx, client.Config{Publisher: "deny", DialTimeout: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	s := c.Session(client.SessionConfig{})
	defer s.Close()
	var lists chan []string // of addresses, from somewhere
	for list := range lists {
		blocked := &weftv1.Set{Name: "blocked", Type: "ipv4_addr"}
		for _, address := range list {
			blocked.Elements = append(blocked.Elements, &weftv1.Element{Key: address})
		}
		revision, err := s.Put(ctx, &weftv1.Fragment{Name: "main", Tables: []*weftv1.Table{{
			Family: "inet", Name: "deny", Sets: []*weftv1.Set{blocked},
			Chains: []*weftv1.Chain{{
				Name: "input", Type: "filter", Hook: "input", Priority: "filter", Policy: "accept",
				Rules: []*weftv1.Rule{{Text: "ip saddr @blocked counter drop"}},
			}},
		}}})
		if err != nil {
			log.Printf("the last list stays in force: %+v", err)
			continue
		}
		fmt.Println("committed", revision)
	}
}
