package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// The fragment that the policy publisher owns, and where.
const (
	policyPublisher = "demo-policy"
	policyFragment  = "deny"
	policyTable     = "demo-policy"
	policySet       = "denied"
)

// policy is a publisher as somebody else would write it: it knows the socket
// and nft, and nothing of Services.
type policy struct {
	session *client.Session

	mu     sync.Mutex
	denied []string
}

// Publish is a policy publisher. It publishes a fragment with an empty set of
// denied addresses, then reads commands "deny ADDRESS" and "allow ADDRESS", each
// of which is one patch, and prints a line for each commit. It ends with
// its input.
func Publish(ctx context.Context, socket string, stdin io.Reader, stdout io.Writer) error {
	c, err := client.Dial(ctx, client.Config{Socket: socket, Publisher: policyPublisher})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	p := &policy{}
	p.session = c.Session(client.SessionConfig{Snapshot: p.snapshot})
	defer func() { _ = p.session.Close() }()
	revision, err := p.session.Put(ctx, p.snapshot(policyFragment))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "committed %d\n", revision)
	lines := bufio.NewScanner(stdin)
	for lines.Scan() {
		if revision, err = p.change(ctx, lines.Text()); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "committed %d\n", revision)
	}
	return lines.Err()
}

// change publishes one command as a patch.
func (p *policy) change(ctx context.Context, command string) (uint64, error) {
	verb, addr, _ := strings.Cut(command, " ")
	patch := &weftv1.ElementPatch{Set: policySet}
	p.mu.Lock()
	switch verb {
	case "deny":
		patch.Add = []*weftv1.Element{{Key: addr}}
		p.denied = append(p.denied, addr)
	case "allow":
		patch.Remove = []string{addr}
		kept := []string{}
		for _, d := range p.denied {
			if d != addr {
				kept = append(kept, d)
			}
		}
		p.denied = kept
	default:
		p.mu.Unlock()
		return 0, fmt.Errorf("read command %q: want deny ADDRESS or allow ADDRESS", command)
	}
	p.mu.Unlock()
	return p.session.Patch(ctx, &weftv1.Patch{
		Fragment: policyFragment,
		Tables:   []*weftv1.TablePatch{{Family: "ip", Name: policyTable, Elements: []*weftv1.ElementPatch{patch}}},
	})
}

// snapshot is the whole fragment.
func (p *policy) snapshot(string) *weftv1.Fragment {
	p.mu.Lock()
	defer p.mu.Unlock()
	var elements []*weftv1.Element
	for _, d := range p.denied {
		elements = append(elements, &weftv1.Element{Key: d})
	}
	return &weftv1.Fragment{
		Name: policyFragment,
		Tables: []*weftv1.Table{{
			Family: "ip", Name: policyTable,
			Sets: []*weftv1.Set{{Name: policySet, Type: "ipv4_addr", Comment: "pods that may not send", Elements: elements}},
			Chains: []*weftv1.Chain{{
				Name: "forward", Type: "filter", Hook: "forward", Priority: "filter", Policy: "accept",
				Rules: []*weftv1.Rule{{Text: "ip saddr @" + policySet + " counter drop"}},
			}},
		}},
	}
}
