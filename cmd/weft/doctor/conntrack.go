package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/weft-proxy/weft/cmd/weft/sysctl"
)

const (
	// in percent
	fullShare, nearlyFullShare = 95, 80
	// maxChain is in entries per bucket. The kernel's default is up to 4, weft's and kube-proxy's is 4.
	maxChain = 8
)

func checkConntrack(_ context.Context, n *node, r *findings) error {
	count, most, err := sysctl.Tracked(n.Root)
	if errors.Is(err, fs.ErrNotExist) || err == nil && most == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	raise := fmt.Sprintf("`sysctl -w net.netfilter.nf_conntrack_max=%d` (weft: --conntrack-min), and look for what opens so many connections (`conntrack -L`)", 2*most)
	switch share := count * 100 / most; {
	case share >= fullShare:
		r.add(Error, fmt.Sprintf("the connection tracking table is full: %d of %d entries", count, most),
			"New connections are dropped, those to Services and those of the node itself", raise)
	case share >= nearlyFullShare:
		r.add(Warning, fmt.Sprintf("the connection tracking table is nearly full: %d of %d entries", count, most),
			"When it is full, new connections are dropped", raise)
	}
	values, err := n.perCPU("nf_conntrack")
	if err != nil {
		return err
	}
	if lost := values["drop"] + values["early_drop"]; lost > 0 {
		r.add(Warning, fmt.Sprintf("since its start the node dropped %d packets, and forgot %d connections early, because the connection tracking table was full", values["drop"], values["early_drop"]),
			"New connections failed, and forgotten ones may have been cut off", raise)
	}
	buckets, exists, err := n.number("proc/sys/net/netfilter/nf_conntrack_buckets")
	if err == nil && exists && buckets > 0 && most/buckets > maxChain {
		r.add(Warning, fmt.Sprintf("the connection tracking table has %d buckets for %d entries", buckets, most),
			"When it fills, each packet searches a long list", fmt.Sprintf("`echo %d > /sys/module/nf_conntrack/parameters/hashsize`", most/4))
	}
	return err
}

// lost reports results as unknown, and returns true, if the connection tracking table is full.
func (r *findings) lost(n *node, what string) bool {
	count, most, err := sysctl.Tracked(n.Root)
	if err != nil || most == 0 || count*100/most < fullShare {
		return false
	}
	r.add(Unknown, "connections of weft doctor were lost, and the connection tracking table is full: "+what,
		"This was not examined", "Make room in the table first, and run weft doctor again")
	return true
}
