package differential

import "strings"

// deliberate is an intended difference.
type deliberate struct {
	// check is GROUP/CHECK, step the number of the step, probe the beginning of the probe's text; empty
	// for all probes of the step.
	check string
	step  int
	probe string
	// minor is the version of kube-proxy, or empty for both
	minor string
	// results in place of the check's, or empty
	peer, weft string
	behaviour  int
	reason     string
}

// All other differences are failures.
func deliberates() []deliberate {
	return []deliberate{
		{"one-family/closed", 0, "tcp outside -> node:80 IPv6", "", "", "refused", 22, "a list of NodePort addresses that leaves a family out closes it"},
		{"udp/scaled-to-zero", 1, "udp outside -> node:80", "", "", "refused", 111, "kube-proxy skips NodePorts: it would match only the port"},
		{"udp/scaled-to-zero", 1, "", earlier, "web-1 as self", "", 111, "no endpoint is left: the flow ends, and the client hears of it"},
		{"udp/deleted", 1, "", "", "", "dropped", 112, "flows of a deleted Service end, before its address or its pod's is another's"},
		{"udp-alone/new-address", 1, "", "", "", "web-1 as node", 113, "a flow that began before its address was a Service's is translated from then on"},
		{"cidr/added", 1, "", "", "", "dropped", 17, "a new ServiceCIDR is in force at once, not at the next full sync"},
	}
}

func findDeliberate(group, check string, step int, p probe, minor string) *deliberate {
	for _, d := range deliberates() {
		if d.check == group+"/"+check && d.step == step && strings.HasPrefix(p.String(), d.probe) && (d.minor == "" || d.minor == minor) {
			return &d
		}
	}
	return nil
}
