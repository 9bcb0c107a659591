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
)

// Legacy iptables has its own interface to the kernel, which only its programs use. They
// are called if they are installed and legacy tables exist.

// legacyTable is what to remove from one table of legacy iptables.
type legacyTable struct {
	family  nft.Family
	program string // iptables-legacy or ip6tables-legacy
	name    string
	chains  []string
	jumps   []string // as iptables-save prints them, "-A CHAIN ..."
	// kept are the chains that other programs' chains jump to, with those chains.
	kept map[string]string
}

func (l legacyTable) what() string {
	return fmt.Sprintf("%d chains of %s table %s, and %d jumps to them", len(l.chains), l.program, l.name, len(l.jumps))
}

// surveyLegacy finds kube-proxy's chains in legacy iptables. If the programs are not
// installed, it returns a notice.
func surveyLegacy(ctx context.Context, proc string) (all []legacyTable, notices []string, err error) {
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
			l := legacyTable{family: f.family, program: f.program, name: t.name}
			if l.parse(text); len(l.chains) > 0 {
				all = append(all, l)
			}
		}
	}
	return all, notices, nil
}

// parse finds kube-proxy's chains, and the jumps to them from base chains, in the output
// of iptables-save. Chains that are declared with a policy are base chains.
func (l *legacyTable) parse(text string) {
	l.kept = map[string]string{}
	base, filled := map[string]bool{}, map[string]bool{}
	var chains []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && strings.HasPrefix(words[0], ":"):
			name := words[0][1:]
			base[name] = words[1] != "-"
			if isPeers(l.name, name) {
				chains = append(chains, name)
			}
		case len(words) < 4 || words[0] != "-A":
		case isPeers(l.name, words[1]):
			filled[words[1]] = true
		default:
			// The target is last: a jump has no options.
			verb, target := words[len(words)-2], words[len(words)-1]
			switch {
			case verb != "-j" && verb != "-g" || !isPeers(l.name, target):
			case base[words[1]]:
				l.jumps = append(l.jumps, strings.TrimSpace(line))
			default:
				l.kept[target] = words[1]
			}
		}
	}
	for _, c := range chains {
		if l.kept[c] == "" || filled[c] {
			l.chains = append(l.chains, c)
		}
	}
}

// notices returns a notice for each chain that stays.
func (l *legacyTable) notices() []string {
	var all []string
	for _, c := range l.chains {
		if by := l.kept[c]; by != "" {
			all = append(all, stayed(c, l.program+" "+l.name, by))
		}
	}
	return all
}

// remove deletes the jumps and the chains in one transaction.
func (l *legacyTable) remove(ctx context.Context) error {
	var b strings.Builder
	fmt.Fprintf(&b, "*%s\n", l.name)
	// Declaring a chain empties it.
	for _, c := range l.chains {
		fmt.Fprintf(&b, ":%s - [0:0]\n", c)
	}
	for _, j := range l.jumps {
		fmt.Fprintf(&b, "-D%s\n", strings.TrimPrefix(j, "-A"))
	}
	for _, c := range l.chains {
		if l.kept[c] == "" {
			fmt.Fprintf(&b, "-X %s\n", c)
		}
	}
	b.WriteString("COMMIT\n")
	_, err := run(ctx, b.String(), l.program+"-restore", "--noflush", "--wait", "5")
	return err
}

// run executes a program and returns its output.
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
