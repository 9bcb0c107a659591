package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/takeover"
	"github.com/weft-proxy/weft/nft/kernel"
)

// addHost adds what the rules of this machine say, if it is a node: where kube-proxy has rules.
func (r *report) addHost(ctx context.Context) {
	const subject = "this machine"
	rules, notices, err := takeover.Find(ctx, takeover.Config{})
	if err != nil {
		r.add(note, subject, "run it on a node as root to have its rules examined", "its rules are not examined: %v", err)
		return
	}
	if len(rules) == 0 {
		r.add(note, subject, "run it on a node as root to have its rules examined", "kube-proxy has no rules here")
		return
	}
	r.add(note, subject, "", "kube-proxy's rules, which weft removes when it has taken over: %s", strings.Join(rules, "; "))
	for _, n := range notices {
		// That kube-proxy runs is expected.
		if !strings.Contains(n, "kube-proxy runs") {
			r.add(differs, subject, "", "%s", n)
		}
	}
	drops, err := dropPolicies()
	if err != nil {
		r.add(note, subject, "", "the rules of other programs are not examined: %v", err)
		return
	}
	if len(drops) > 0 {
		r.add(differs, subject, "see that these accept packets to and from the pods by themselves: kube-proxy accepted those of Services in the chain KUBE-FORWARD, which goes. When weft runs on the node, weft doctor says what they drop",
			"chains of other programs drop what they do not accept: %s", strings.Join(drops, ", "))
	}
}

// dropPolicies names the chains of other programs that drop forwarded packets by their policy.
func dropPolicies() ([]string, error) {
	const forward = 2 // NF_INET_FORWARD
	reader, err := kernel.OpenReader(kernel.Config{})
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	defer func() { _ = reader.Close() }()
	programs, err := reader.Programs()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range programs {
		if p.Ours || p.Dormant || !slices.Contains([]string{"ip", "ip6", "inet"}, p.ID.Family.String()) {
			continue
		}
		for _, c := range p.Chains {
			if c.Base != nil && c.Base.Drop && c.Base.Hook == forward {
				out = append(out, fmt.Sprintf("table %s chain %s", p.ID, c.Name))
			}
		}
	}
	return out, nil
}
