package findings

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/retry"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/lint"
)

const (
	// minRest is the least time between two looks; restFactor multiplies the time of the last look.
	minRest    = time.Second
	restFactor = 50
)

// Config describes an Inspector.
type Config struct {
	// Merged returns all tables as of the last commit.
	Merged func(context.Context) ([]*desired.Merged, error)
	// Foreign returns the tables of all programs in the kernel, valid until closed; nil means only weft's
	// tables.
	Foreign func() (rules *eval.Ruleset, close func(), err error)
	// Needs may be nil.
	Needs func() []lint.Need
	// Changed is called for each new and each gone finding.
	Changed func(f *lint.Finding, gone bool)
	// Counted is called after each look.
	Counted func(map[lint.ID]int)
	Logger  *slog.Logger
}

// Inspector keeps the findings.
type Inspector struct {
	cfg   Config
	task  *retry.Task
	state atomic.Pointer[state]
}

type state struct {
	all []lint.Finding
	// of is by "publisher/name".
	of map[string][]*weftv1.Finding
}

// New returns an Inspector, idle until Run.
func New(cfg Config) *Inspector {
	i := &Inspector{cfg: cfg}
	i.state.Store(&state{})
	i.task = retry.New(retry.Config{
		Do: i.look, Retry: minRest, Rest: restFactor, Logger: cfg.Logger, Failing: "cannot look for findings", Failed: func() {},
	})
	return i
}

// Wake reports a commit that changed rules, chains or sets. It does not wait.
func (i *Inspector) Wake() { i.task.Wake(0) }

// Of returns the findings of a fragment as visible to its publisher. They are read-only.
func (i *Inspector) Of(key desired.Key) []*weftv1.Finding { return i.state.Load().of[key.String()] }

// Run looks for findings after each Wake until ctx ends.
func (i *Inspector) Run(ctx context.Context) { i.task.Run(ctx, ctx) }

func (i *Inspector) look(ctx context.Context) error {
	merged, err := i.cfg.Merged(ctx)
	if err != nil {
		return err
	}
	found, err := i.Find(merged)
	if err != nil {
		return err
	}
	before := i.state.Swap(newState(found))
	i.compare(before.all, found)
	return nil
}

// Find returns the findings of merged tables that involve a fragment.
func (i *Inspector) Find(merged []*desired.Merged) ([]lint.Finding, error) {
	var foreign *eval.Ruleset
	if i.cfg.Foreign != nil {
		rules, closeRules, err := i.cfg.Foreign()
		if err != nil {
			return nil, err
		}
		defer closeRules()
		foreign = rules
	}
	var o lint.Options
	if i.cfg.Needs != nil {
		o.Needs = i.cfg.Needs()
	}
	var found []lint.Finding
	for _, f := range lint.Run(Ruleset(merged, foreign), o) {
		if f.Subject.Party.Fragment != "" || f.Other.Party.Fragment != "" {
			found = append(found, f)
		}
	}
	return found, nil
}

func (i *Inspector) compare(before, after []lint.Finding) {
	const isBefore, isAfter = 1, 2
	seen := make(map[string]int)
	identity := func(f *lint.Finding) string { return string(f.ID) + " " + f.Text + strings.Join(f.Rules(nil), " ") }
	for k := range before {
		seen[identity(&before[k])] |= isBefore
	}
	count := make(map[lint.ID]int)
	for k := range after {
		f := &after[k]
		count[f.ID] += 1 + f.More
		if seen[identity(f)]&isBefore == 0 {
			i.cfg.Changed(f, false)
		}
		seen[identity(f)] |= isAfter
	}
	for k := range before {
		if seen[identity(&before[k])]&isAfter == 0 {
			i.cfg.Changed(&before[k], true)
		}
	}
	i.cfg.Counted(count)
}

func newState(found []lint.Finding) *state {
	s := &state{all: found, of: make(map[string][]*weftv1.Finding)}
	for k := range found {
		f := &found[k]
		for n, fragment := range []string{f.Subject.Party.Fragment, f.Other.Party.Fragment} {
			if fragment == "" || n == 1 && fragment == f.Subject.Party.Fragment {
				continue
			}
			publisher, _, _ := strings.Cut(fragment, "/")
			s.of[fragment] = append(s.of[fragment], Message(f, publisher))
		}
	}
	return s
}

// Message returns a finding as visible to a publisher.
func Message(f *lint.Finding, publisher string) *weftv1.Finding {
	sees := func(p lint.Party) bool {
		return p.Fragment == "" || strings.HasPrefix(p.Fragment, publisher+"/")
	}
	return &weftv1.Finding{
		Id: string(f.ID), Text: f.Text, Remedy: f.Remedy, Rules: f.Rules(sees), Example: f.Example, More: uint32(f.More), //nolint:gosec // a count
		Subject: message.Owner(f.Subject.Party.Fragment), Other: message.Owner(f.Other.Party.Fragment),
	}
}
