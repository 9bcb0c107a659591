package takeover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
)

// weft leaves the kernel's interface of legacy iptables to its programs, and calls them only if
// legacy tables exist.

type legacyTable struct {
	program string // iptables-legacy or ip6tables-legacy
	name    string
	// lines "-A CHAIN ..." of iptables-save, with their indexes as handles
	rules []string
}

// surveyLegacy returns a notice if the programs are not installed.
func surveyLegacy(ctx context.Context, proc string) (plans []plan, notices []string, err error) {
	for _, f := range []struct {
		family         nft.Family
		names, program string
	}{
		{nft.FamilyIP, "ip_tables_names", "iptables-legacy"},
		{nft.FamilyIP6, "ip6_tables_names", "ip6tables-legacy"},
	} {
		b, err := os.ReadFile(filepath.Join(proc, "self/net", f.names))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the kernel has no legacy iptables
		}
		if err != nil {
			return nil, nil, fmt.Errorf("list legacy tables: %w", err)
		}
		present := strings.Fields(string(b))
		if _, err := exec.LookPath(f.program + "-save"); len(present) > 0 && err != nil {
			notices = append(notices, fmt.Sprintf("legacy iptables is in use (tables %s), and %s-save is not installed here: look on the node for chains whose names begin with KUBE-, and run `kube-proxy --cleanup` there if there are any", strings.Join(present, ", "), f.program))
			continue
		}
		for _, t := range tables {
			if !slices.Contains(present, t.name) {
				continue
			}
			text, err := run(ctx, "", f.program+"-save", "-t", t.name)
			if err != nil {
				return nil, nil, err
			}
			l := &legacyTable{program: f.program, name: t.name}
			if p := l.plan(f.family, text); len(p.removal.Flush) > 0 {
				plans = append(plans, p)
			}
		}
	}
	return plans, notices, nil
}

// text is the output of iptables-save.
func (l *legacyTable) plan(family nft.Family, text string) plan {
	p := iptables(l.parse(family, text), l.program+" table "+l.name, l.program+" "+l.name)
	p.legacy = l
	return p
}

// Chains with a policy are base chains.
func (l *legacyTable) parse(family nft.Family, text string) *kernel.Survey {
	s := &kernel.Survey{ID: nft.TableID{Family: family, Name: l.name}}
	index := map[string]int{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && strings.HasPrefix(words[0], ":"):
			c := kernel.SurveyChain{Name: words[0][1:]}
			if words[1] != "-" {
				c.Base = &object.Base{}
			}
			index[c.Name] = len(s.Chains)
			s.Chains = append(s.Chains, c)
		case len(words) > 1 && words[0] == "-A":
			r := kernel.SurveyRule{Handle: uint64(len(l.rules))}
			l.rules = append(l.rules, strings.TrimSpace(line))
			// Only another target than a chain has options after it.
			if verb := words[len(words)-2]; verb == "-j" || verb == "-g" {
				r.Target = words[len(words)-1]
			}
			if i, ok := index[words[1]]; ok {
				s.Chains[i].Rules = append(s.Chains[i].Rules, r)
			}
		}
	}
	return s
}

// remove uses one transaction.
func (l *legacyTable) remove(ctx context.Context, r kernel.Removal) error {
	var b strings.Builder
	fmt.Fprintf(&b, "*%s\n", l.name)
	// Declaring a chain empties it.
	for _, c := range r.Flush {
		fmt.Fprintf(&b, ":%s - [0:0]\n", c)
	}
	for _, jump := range r.Rules {
		fmt.Fprintf(&b, "-D%s\n", strings.TrimPrefix(l.rules[jump.Handle], "-A"))
	}
	for _, c := range r.Chains {
		fmt.Fprintf(&b, "-X %s\n", c)
	}
	b.WriteString("COMMIT\n")
	_, err := run(ctx, b.String(), l.program+"-restore", "--noflush", "--wait", "5")
	return err
}

func run(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, errout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errout
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s: %w: %s", name, err, strings.TrimSpace(errout.String()))
	}
	return out.String(), nil
}
