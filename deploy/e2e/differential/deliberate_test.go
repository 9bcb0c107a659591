package differential

import "strings"

// deliberate is a difference that weft makes on purpose.
type deliberate struct {
	// check is GROUP/CHECK, step the number of the step, probe the beginning of
	// the probe's text; all probes of the step where it is empty.
	check string
	step  int
	probe string
	// weft is what weft does where kube-proxy does what the check says.
	weft      string
	behaviour int
	reason    string
}

// deliberates are all of them. Whatever else differs is a failure.
func deliberates() []deliberate {
	return []deliberate{
		{"one-family/closed", 0, "tcp outside -> node:80 IPv6", "refused", 22, "a list of NodePort addresses that leaves a family out closes it"},
		{"udp/scaled-to-zero", 1, "", "refused", 111, "no endpoint is left: the flow ends, and the client hears of it"},
		{"udp/deleted", 1, "", "dropped", 112, "flows of a deleted Service end, before its address or its pod's is another's"},
		{"udp-alone/new-address", 1, "", "web-1 as node", 113, "a flow that began before its address was a Service's is translated from then on"},
		{"cidr/added", 1, "", "dropped", 17, "a new ServiceCIDR is in force at once, not at the next full sync"},
	}
}

// findDeliberate is the entry for a probe, if there is one.
func findDeliberate(group, check string, step int, p probe) *deliberate {
	for _, d := range deliberates() {
		if d.check == group+"/"+check && d.step == step && strings.HasPrefix(p.String(), d.probe) {
			return &d
		}
	}
	return nil
}
