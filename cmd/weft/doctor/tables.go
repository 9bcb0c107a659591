package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/takeover"
	"github.com/weft-proxy/weft/nft/kernel"
)

func checkModules(_ context.Context, n *node, r *findings) error {
	_, err := n.open()
	switch {
	case errors.Is(err, kernel.ErrNoNFTables):
		r.add(Error, fmt.Sprintf("the kernel has no nf_tables: %v", err), "weft cannot write rules on this node",
			"`modprobe nf_tables`, or boot a kernel with CONFIG_NF_TABLES and CONFIG_NF_TABLES_INET")
		return nil
	case errors.Is(err, kernel.ErrTooOld):
		r.add(Error, err.Error(), "weft cannot work on this kernel", "Boot Linux 5.13 or later")
		return nil
	case err != nil:
		return err
	}
	tables, err := n.tables()
	if err != nil {
		return err
	}
	_, tracking, err := n.number("proc/sys/net/netfilter/nf_conntrack_max")
	if err != nil || tracking || len(ours(tables)) == 0 {
		return err
	}
	r.add(Error, "connection tracking is not loaded, although weft has tables", "Destinations are not translated: Services do not answer",
		"`modprobe nf_conntrack`, and add it to /etc/modules-load.d")
	return nil
}

func ours(tables []kernel.TableInfo) []kernel.TableInfo {
	return slices.DeleteFunc(slices.Clone(tables), func(t kernel.TableInfo) bool { return !t.Ours })
}

// checkTables compares owners and flags of tables with the running weft.
func checkTables(ctx context.Context, n *node, r *findings) error {
	tables, err := n.tables()
	if err != nil {
		return err
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
	if len(asleep) > 0 {
		r.add(Warning, cli.Some(asleep)+" is dormant", "None of its rules sees a packet", "`weft get tables` names the fragments; one of them has the flag dormant")
	}
	if len(doomed) > 0 {
		r.add(Error, cli.Some(doomed)+" does not persist", "The kernel removes it when its owner ends", "Restart weft; if it stays so, this is a bug of weft: report it with `weft doctor --bundle`")
	}
	c, err := n.dial()
	if err != nil {
		if len(free) > 0 {
			r.add(Error, fmt.Sprintf("%s is in force, and no weft keeps it", cli.Some(free)), "Its rules are out of date as soon as an endpoint or a policy changes",
				"Start weft; or if this node is not weft's any more, remove the rules with `weft cleanup`")
		}
		return nil
	}
	info, err := weftv1.NewInspectClient(c.Conn()).GetInfo(ctx, &weftv1.GetInfoRequest{})
	if err == nil && info.GetKernel().GetOwner() && len(free) > 0 {
		r.add(Warning, cli.Some(free)+" has no owner, although the kernel supports owners",
			"Other programs can change it, and `nft flush ruleset` removes it", "It was made by an older weft: drain the node, then `weft cleanup`, and start weft again")
	}
	return err
}

func checkKubeProxy(ctx context.Context, n *node, r *findings) error {
	left, notices, err := takeover.Find(ctx, takeover.Config{Proc: strings.TrimSuffix(n.Root, "/") + "/proc"})
	if len(left) > 0 {
		r.add(Error, "rules of kube-proxy are in force: "+cli.Some(left),
			"They can take packets before weft's rules do, and send them to endpoints that do not exist any more",
			"Stop kube-proxy on this node if it runs, and then `weft cleanup --kube-proxy`")
	}
	for _, text := range notices {
		r.add(Warning, text, "Two proxies on one node translate the same packets", "See above; the documentation of the migration has the order of steps (deploy/kubernetes/README.md)")
	}
	return err
}
