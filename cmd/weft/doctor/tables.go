package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/takeover"
	"github.com/weft-proxy/weft/nft/kernel"
)

// checkModules opens nf_tables, and looks for what the kernel lacks.
func checkModules(_ context.Context, n *node) ([]Finding, error) {
	_, err := n.open()
	switch {
	case errors.Is(err, kernel.ErrNoNFTables):
		return []Finding{{
			Severity: Error, Found: fmt.Sprintf("the kernel has no nf_tables: %v", err), Meaning: "weft cannot write rules on this node",
			Remedy: "`modprobe nf_tables`, or boot a kernel with CONFIG_NF_TABLES and CONFIG_NF_TABLES_INET",
		}}, nil
	case errors.Is(err, kernel.ErrTooOld):
		return []Finding{{
			Severity: Error, Found: err.Error(), Meaning: "weft cannot work on this kernel", Remedy: "Boot Linux 5.13 or later",
		}}, nil
	case err != nil:
		return nil, err
	}
	tables, err := n.tables()
	if err != nil {
		return nil, err
	}
	_, tracking, err := n.number("proc/sys/net/netfilter/nf_conntrack_max")
	if err != nil || tracking || len(ours(tables)) == 0 {
		return nil, err
	}
	return []Finding{{
		Severity: Error, Found: "connection tracking is not loaded, although weft has tables", Meaning: "Destinations are not translated: Services do not answer",
		Remedy: "`modprobe nf_conntrack`, and add it to /etc/modules-load.d",
	}}, nil
}

// ours returns weft's tables.
func ours(tables []kernel.TableInfo) []kernel.TableInfo {
	var out []kernel.TableInfo
	for _, t := range tables {
		if t.Ours {
			out = append(out, t)
		}
	}
	return out
}

// checkTables compares weft's tables in the kernel with whether weft runs and owns them.
func checkTables(ctx context.Context, n *node) ([]Finding, error) {
	tables, err := n.tables()
	if err != nil {
		return nil, err
	}
	var free, doomed, asleep []string
	for _, t := range ours(tables) {
		name := "table " + t.ID.String()
		if t.Owner == 0 {
			free = append(free, name)
		} else if !t.Persist {
			doomed = append(doomed, name)
		}
		if t.Dormant {
			asleep = append(asleep, name)
		}
	}
	var out []Finding
	if len(asleep) > 0 {
		out = append(out, Finding{
			Severity: Warning, Found: cli.Some(asleep) + " is dormant", Meaning: "None of its rules sees a packet", Remedy: "`weft get tables` names the fragments; one of them has the flag dormant",
		})
	}
	if len(doomed) > 0 {
		out = append(out, Finding{
			Severity: Error, Found: cli.Some(doomed) + " does not persist", Meaning: "The kernel removes it when its owner ends", Remedy: "Restart weft; if it stays so, this is a bug of weft: report it with `weft doctor --bundle`",
		})
	}
	c, err := n.dial()
	if err != nil {
		if len(free) > 0 {
			out = append(out, Finding{
				Severity: Error, Found: fmt.Sprintf("%s is in force, and no weft keeps it", cli.Some(free)), Meaning: "Its rules are out of date as soon as an endpoint or a policy changes",
				Remedy: "Start weft; or if this node is not weft's any more, remove the rules with `weft cleanup`",
			})
		}
		return out, nil
	}
	info, err := weftv1.NewInspectClient(c.Conn()).GetInfo(ctx, &weftv1.GetInfoRequest{})
	if err == nil && info.GetKernel().GetOwner() && len(free) > 0 {
		out = append(out, Finding{
			Severity: Warning, Found: cli.Some(free) + " has no owner, although the kernel supports owners",
			Meaning: "Other programs can change it, and `nft flush ruleset` removes it", Remedy: "It was made by an older weft: drain the node, then `weft cleanup`, and start weft again",
		})
	}
	return out, err
}

// checkKubeProxy looks for rules of kube-proxy, and for kube-proxy itself.
func checkKubeProxy(ctx context.Context, n *node) ([]Finding, error) {
	left, notices, err := takeover.Find(ctx, takeover.Config{Proc: strings.TrimSuffix(n.Root, "/") + "/proc"})
	var out []Finding
	if len(left) > 0 {
		out = append(out, Finding{
			Severity: Error, Found: "rules of kube-proxy are in force: " + cli.Some(left),
			Meaning: "They can take packets before weft's rules do, and send them to endpoints that do not exist any more",
			Remedy:  "Stop kube-proxy on this node if it runs, and then `weft cleanup --kube-proxy`",
		})
	}
	for _, text := range notices {
		out = append(out, Finding{Severity: Warning, Found: text, Meaning: "Two proxies on one node translate the same packets", Remedy: "See above; the documentation of the migration has the order of steps (deploy/kubernetes/README.md)"})
	}
	return out, err
}
