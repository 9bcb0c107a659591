package client_test

import (
	"context"
	"iter"
	"slices"
	"sync"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// denyList is the model of the publisher in the example.
type denyList struct {
	mu      sync.Mutex
	blocked []string
	source  chan string
}

func newDenyList() *denyList { return &denyList{source: make(chan string)} }

// fragment is what the publisher wants now.
func (l *denyList) fragment(name string) *weftv1.Fragment {
	l.mu.Lock()
	defer l.mu.Unlock()
	set := &weftv1.Set{Name: "blocked", Type: "ipv4_addr"}
	for _, a := range l.blocked {
		set.Elements = append(set.Elements, &weftv1.Element{Key: a})
	}
	return &weftv1.Fragment{Name: name, Tables: []*weftv1.Table{{
		Family: "inet", Name: "deny", Sets: []*weftv1.Set{set},
		Chains: []*weftv1.Chain{{
			Name: "input", Type: "filter", Hook: "input", Priority: "filter", Policy: "accept",
			Rules: []*weftv1.Rule{{Text: "ip saddr @blocked counter drop"}},
		}},
	}}}
}

// additions adds what comes in, and returns each address.
func (l *denyList) additions(ctx context.Context) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case a := <-l.source:
				l.mu.Lock()
				l.blocked = append(l.blocked, a)
				l.mu.Unlock()
				if !yield(a) {
					return
				}
			}
		}
	}
}

func (l *denyList) remove(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked = slices.DeleteFunc(l.blocked, func(a string) bool { return a == address })
}
