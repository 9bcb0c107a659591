package daemon

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/policy"
	"github.com/weft-proxy/weft/frontends/policy/render"
)

const (
	flagPolicy        = "network-policy"
	flagPolicyStart   = "policy-start"
	flagPolicyDropLog = "policy-drop-log"
	flagPolicyRecheck = "policy-recheck"
	flagPolicyNRI     = "policy-nri-socket"
	flagPolicyStatus  = "cluster-policy-status"
)

const (
	startAllow = "allow"
	startDeny  = "deny"
)

type policyFlags struct {
	// only for weft run
	enabled bool
	start   string
	dropLog int
	recheck time.Duration
	nri     string
	status  bool
}

func (p *policyFlags) add(set, expert *pflag.FlagSet, verb Verb) {
	if verb == VerbRun {
		set.BoolVar(&p.enabled, flagPolicy, false, "also enforce NetworkPolicies and ClusterNetworkPolicies on this node")
	}
	set.StringVar(&p.start, flagPolicyStart, startAllow,
		"what pods of this node that the API has not reported yet may do: allow (everything) or deny (they exchange packets only with this node)")
	set.IntVar(&p.dropLog, flagPolicyDropLog, 0,
		"dropped packets a second to write to the kernel's log, for each set of policies and direction; 0 means none")
	expert.DurationVar(&p.recheck, flagPolicyRecheck, render.DefaultRecheckFor,
		"for how long established connections are judged again after a policy allows less, if the aggregator does not grant flows to the publisher policy: at least as long as the kernel tracks an idle connection; with that right, until no connection is denied any more")
	set.StringVar(&p.nri, flagPolicyNRI, "",
		"path of the container runtime's NRI socket, such as /var/run/nri/nri.sock: new pods are isolated before their containers start; empty means that the API reports all pods")
	set.BoolVar(&p.status, flagPolicyStatus, false,
		"write the condition Accepted into the status of ClusterNetworkPolicies, which needs a further right in the API")
}

func (p *policyFlags) check(set *pflag.FlagSet, enabled bool) error {
	for _, name := range []string{flagPolicyStart, flagPolicyDropLog, flagPolicyRecheck, flagPolicyNRI, flagPolicyStatus} {
		if f := set.Lookup(name); !enabled && f != nil && f.Changed {
			return cli.Usagef("--%s: it needs --%s", name, flagPolicy)
		}
	}
	if p.start != startAllow && p.start != startDeny {
		return cli.Usagef("--%s %q: want %s or %s", flagPolicyStart, p.start, startAllow, startDeny)
	}
	if p.dropLog < 0 {
		return cli.Usagef("--%s %d: want at least 0", flagPolicyDropLog, p.dropLog)
	}
	if p.recheck <= 0 {
		return cli.Usagef("--%s %v: want more than 0", flagPolicyRecheck, p.recheck)
	}
	return nil
}

func (d *daemon) hasPolicy() bool { return d.verb == VerbPolicy || d.policy.enabled }

func (d *daemon) addPolicy() error {
	cfg := policy.Config{
		Source: d.cluster.source, NodeName: d.cluster.nodeName, Socket: d.cluster.socket, Local: d.cluster.local, Text: convert.Text, Events: d.cluster.events,
		DropLog: d.policy.dropLog, RecheckFor: d.policy.recheck, RuntimeSocket: d.policy.nri, Logger: d.log.With("component", "policy"), Registerer: d.registry,
	}
	if d.policy.start == startDeny {
		cfg.Start = render.StartDeny
	}
	if d.policy.status {
		if d.cluster.api == nil {
			return cli.Usagef("--%s: it needs an API server", flagPolicyStatus)
		}
		cfg.StatusClient = d.cluster.api
	}
	f, err := policy.New(cfg)
	if err != nil {
		return err
	}
	d.frontends = append(d.frontends, f)
	return nil
}
