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

// A fragment that is put once: whoever changes it later applies it again, as a
// whole. What did not change costs nothing.
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

// A publisher that stays: it sends its fragment once, and then what changes. The
// session reconnects and resyncs by itself.
func ExampleSession() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := client.Dial(ctx, client.Config{Publisher: "deny", DialTimeout: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	list := newDenyList()
	s := c.Session(client.SessionConfig{
		Snapshot: list.fragment,
		OnSync: func(name string, revision uint64, err error) {
			log.Printf("resync of %s: revision %d, error %v", name, revision, err)
		},
	})
	defer s.Close()
	if _, err := s.Put(ctx, list.fragment("main")); err != nil {
		log.Fatal(err)
	}
	for address := range list.additions(ctx) {
		// The list has the address before the patch is sent.
		_, err := s.Patch(ctx, &weftv1.Patch{Fragment: "main", Tables: []*weftv1.TablePatch{{
			Family: "inet", Name: "deny",
			Elements: []*weftv1.ElementPatch{{Set: "blocked", Add: []*weftv1.Element{{Key: address}}}},
		}}})
		var rejected *client.RejectedError
		if errors.As(err, &rejected) {
			list.remove(address) // else the next snapshot would be refused for it
		}
		if err != nil {
			log.Print(err)
		}
	}
}
