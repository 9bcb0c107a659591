package explain

import (
	"context"
	"errors"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
)

// owners asks weft for the text and the fragment of its rules, for each once. Without weft the
// rules keep what the kernel has of them.
type owners struct {
	from   *cli.Connection
	client *client.Client
	// absent is true after weft did not answer, or refused.
	absent bool
	known  map[ruleName]*weftv1.ObjectOwner
}

// ruleName identifies a rule.
type ruleName struct {
	table  nft.TableID
	handle uint64
}

func newOwners(c *cli.Connection) *owners {
	return &owners{from: c, known: make(map[ruleName]*weftv1.ObjectOwner)}
}

func (o *owners) close() {
	if o.client != nil {
		_ = o.client.Close()
	}
}

// describe adds the text and the fragment of a rule of weft.
func (o *owners) describe(ctx context.Context, s *eval.Step, to *Step) error {
	// A rule that is nothing but a verdict needs no question. There are many of them: a pod's
	// chain jumps to one chain for each policy.
	if s.Verdict.Chain != "" && len(s.Matched.Exprs) == 1 {
		to.Rule = s.Verdict.String()
		return nil
	}
	if s.Matched.Owner == "" || o.absent {
		return nil
	}
	name := ruleName{s.Table, s.Rule}
	owner, ok := o.known[name]
	if !ok {
		var err error
		if owner, err = o.ask(ctx, s); errors.Is(err, client.ErrUnavailable) || errors.Is(err, client.ErrPermission) {
			o.absent = true
			return nil
		} else if err != nil {
			return err
		}
		o.known[name] = owner
	}
	if owner != nil {
		// The comment has a field of its own.
		text, _, _ := strings.Cut(owner.GetText(), " comment \"")
		to.Rule, to.Owner = text, owner.GetFragment().Text()
	}
	return nil
}

// ask asks for the owner of a rule; nil means that weft does not know it any more.
func (o *owners) ask(ctx context.Context, s *eval.Step) (*weftv1.ObjectOwner, error) {
	if o.client == nil {
		c, err := client.Dial(ctx, client.Config{Socket: o.from.Socket, Publisher: o.from.Publisher, DialTimeout: -1})
		if err != nil {
			return nil, err
		}
		o.client = c
	}
	answer, err := o.client.Owner(ctx, &weftv1.OwnerRequest{Object: &weftv1.ObjectName{
		Kind: "rule", Family: s.Table.Family.String(), Table: s.Table.Name, Name: s.Chain, Handle: s.Rule,
	}})
	switch {
	case errors.Is(err, client.ErrNotFound):
		return nil, nil //nolint:nilnil // see above
	case err != nil:
		return nil, err
	case len(answer.GetOwners()) == 0:
		return nil, nil //nolint:nilnil // see above
	}
	return answer.GetOwners()[0], nil
}
