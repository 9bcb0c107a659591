package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/takeover/ipvs"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// errNotLive prevents a removal that leaves Services in a family without rules.
var errNotLive = errors.New("weft's own rules are missing")

// ErrWaiting means that connections through IPVS go on: Remove is to be called again.
var ErrWaiting = errors.New("what kube-proxy left stays until connections of IPVS have ended")

// Config configures Remove and Find.
type Config struct {
	// Force removes rules even if weft's are missing.
	Force bool
	// Cut does not wait for open connections through IPVS.
	Cut bool
	// Proc is by default "/proc".
	Proc string
}

// Report is the result of Remove.
type Report struct {
	// such as "table ip kube-proxy" or "12 chains of iptables table ip nat"
	Removed []string
	// notices for the operator
	Notices []string
}

// Remove removes kube-proxy's rules. If weft's rules are missing it only returns an error, unless Force is
// set. It is idempotent.
func Remove(ctx context.Context, cfg Config) (Report, error) {
	var report Report
	conn, plans, left, notices, err := find(ctx, cfg)
	if err != nil {
		return report, err
	}
	defer func() { _ = conn.Close() }()
	if !cfg.Force {
		if err := live(conn, plans, left); err != nil {
			return report, err
		}
	}
	removed, waiting, err := left.Release(ctx, cfg.Cut)
	report.Removed = removed
	if waiting != "" {
		return report, errors.Join(fmt.Errorf("%w: %s", ErrWaiting, waiting), err)
	}
	report.Notices = notices
	errs := []error{err}
	for _, p := range plans {
		if p.legacy != nil {
			err = p.legacy.remove(ctx, p.removal)
		} else {
			err = conn.RemoveForeign(p.removal)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", p.what, err))
			continue
		}
		report.Removed = append(report.Removed, p.what)
		report.Notices = append(report.Notices, p.notices...)
	}
	// The sets say which virtual servers are kube-proxy's.
	if errs[0] == nil {
		removed, err = left.DestroySets()
		report.Removed, errs = append(report.Removed, removed...), append(errs, err)
	}
	return report, errors.Join(errs...)
}

// Find returns the removals and notices of Remove.
func Find(ctx context.Context, cfg Config) (what, notices []string, err error) {
	conn, plans, left, notices, err := find(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	return append(cli.Map(plans, func(p plan) string { return p.what }), left.What()...), notices, conn.Close()
}

// The caller closes conn.
func find(ctx context.Context, cfg Config) (conn *kernel.Conn, plans []plan, left *ipvs.Left, notices []string, err error) {
	if conn, err = kernel.Open(kernel.Config{}); err != nil {
		return nil, nil, nil, nil, fmt.Errorf("look for rules of kube-proxy: %w", err)
	}
	proc := cmp.Or(cfg.Proc, "/proc")
	plans, err = survey(conn)
	if err == nil {
		var legacy []plan
		legacy, notices, err = surveyLegacy(ctx, proc)
		plans = append(plans, legacy...)
	}
	if err == nil {
		left, err = ipvs.Find(proc)
	}
	if err != nil {
		return nil, nil, nil, nil, errors.Join(fmt.Errorf("look for rules of kube-proxy: %w", err), conn.Close())
	}
	for _, other := range left.Others {
		notices = append(notices, other+" stays: it is not kube-proxy's")
	}
	return conn, plans, left, append(notices, look(proc)...), nil
}

type plan struct {
	what    string
	removal kernel.Removal
	notices []string
	// nil for nftables
	legacy *legacyTable
}

func (p plan) serves() bool {
	return p.removal.Whole || slices.ContainsFunc(p.removal.Flush, func(chain string) bool {
		return slices.ContainsFunc(tables[0].prefixes, func(prefix string) bool { return strings.HasPrefix(chain, prefix) })
	})
}

// survey finds tables of kube-proxy, and its chains in tables of iptables-nft.
func survey(conn *kernel.Conn) ([]plan, error) {
	var plans []plan
	for _, f := range families {
		id := nft.TableID{Family: f, Name: peerTable}
		s, err := conn.Survey(id)
		if err != nil {
			return nil, err
		}
		if s != nil {
			plans = append(plans, plan{what: "table " + id.String(), removal: kernel.Removal{Table: id, Whole: true}})
		}
	}
	for _, f := range families {
		for _, t := range tables {
			s, err := conn.Survey(nft.TableID{Family: f, Name: t.name})
			if err != nil {
				return nil, err
			}
			// A table of weft may have any name.
			if s == nil || s.Ours {
				continue
			}
			if p := iptables(s, "iptables table "+s.ID.String(), s.ID.String()); len(p.removal.Flush) > 0 {
				plans = append(plans, p)
			}
		}
	}
	return plans, nil
}

// iptables plans the removal of kube-proxy's chains. A chain with a jump from another program's chain
// becomes empty, but stays. reported and noticed name the table.
func iptables(s *kernel.Survey, reported, noticed string) plan {
	p := plan{removal: kernel.Removal{Table: s.ID}}
	kept := map[string]string{}
	for _, c := range s.Chains {
		for _, r := range c.Rules {
			switch {
			case isPeers(s.ID.Name, c.Name) || !isPeers(s.ID.Name, r.Target):
			case c.Base != nil:
				p.removal.Rules = append(p.removal.Rules, kernel.RemovalRule{Chain: c.Name, Handle: r.Handle})
			default:
				kept[r.Target] = c.Name
			}
		}
	}
	for _, c := range s.Chains {
		if !isPeers(s.ID.Name, c.Name) {
			continue
		}
		by, stays := kept[c.Name]
		if !stays {
			p.removal.Chains = append(p.removal.Chains, c.Name)
		} else if len(c.Rules) == 0 {
			continue // as an earlier call left it
		} else {
			p.notices = append(p.notices, fmt.Sprintf("chain %s of table %s is empty now, but stays: chain %s, which is not kube-proxy's, jumps to it", c.Name, noticed, by))
		}
		p.removal.Flush = append(p.removal.Flush, c.Name)
	}
	p.what = fmt.Sprintf("%d chains of %s, and %d jumps to them", len(p.removal.Flush), reported, len(p.removal.Rules))
	return p
}

// live requires rules of weft in every family in which kube-proxy left rules or virtual servers of
// Services. kube-proxy writes its other chains in both families.
func live(conn *kernel.Conn, plans []plan, left *ipvs.Left) error {
	for _, f := range families {
		if !slices.ContainsFunc(plans, func(p plan) bool { return p.removal.Table.Family == f && p.serves() }) &&
			!slices.ContainsFunc(left.Servers, func(s ipvs.Server) bool { return s.Is4() == (f == nft.FamilyIP) }) {
			continue
		}
		id := weftTable(f)
		s, err := conn.Survey(id)
		if err != nil {
			return fmt.Errorf("look for weft's rules: %w", err)
		}
		if s == nil || !s.Ours || !translates(s) {
			return fmt.Errorf("remove rules of kube-proxy: %w: no table %s in this network namespace: start weft and wait until it is ready, or use --force to leave the node without rules for Services", errNotLive, id)
		}
	}
	return nil
}

func translates(s *kernel.Survey) bool {
	return slices.ContainsFunc(s.Chains, func(c kernel.SurveyChain) bool { return c.Base != nil && c.Base.Type == "nat" && len(c.Rules) > 0 })
}

// look returns notices of remains that this package keeps.
func look(proc string) []string {
	var notices []string
	if pids := sameNamespace(proc, "kube-proxy"); len(pids) > 0 {
		notices = append(notices, fmt.Sprintf("kube-proxy runs (process %s) and will write its rules again: stop it first", pids))
	}
	return notices
}

func sameNamespace(proc, name string) string {
	own, err := os.Readlink(filepath.Join(proc, "self/ns/net"))
	if err != nil {
		return ""
	}
	all, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	if err != nil {
		return ""
	}
	var pids []string
	for _, path := range all {
		dir := filepath.Dir(path)
		comm, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(comm)) != name {
			continue
		}
		if ns, err := os.Readlink(filepath.Join(dir, "ns/net")); err == nil && ns == own {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return strings.Join(pids, ", ")
}
