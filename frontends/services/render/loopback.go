package render

import (
	"cmp"
	"fmt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// loopbackCounter precedes the protocol in the name of a counter. No reason of a drop has such a name.
const loopbackCounter = "rejected-on-loopback-"

var nodePortProtocols = []model.Protocol{model.TCP, model.UDP, model.SCTP}

// RejectedOnLoopback returns the protocol of a counter of packets to NodePorts on loopback addresses.
func RejectedOnLoopback(counter string) (model.Protocol, bool) {
	for _, p := range nodePortProtocols {
		if counter == loopbackCounter+p.String() {
			return p, true
		}
	}
	return 0, false
}

func (t *table) loopbackRejects() (rules []string) {
	for _, p := range nodePortProtocols {
		if t.loopback.Rejects(p) {
			rules = append(rules, fmt.Sprintf("meta l4proto %s counter name %q reject", p, loopbackCounter+p.String()))
		}
	}
	return rules
}

func (t *table) loopbackCounters() (out []*weftv1.Object) {
	for _, p := range nodePortProtocols {
		if t.loopback.Rejects(p) {
			out = append(out, &weftv1.Object{Kind: "counter", Name: loopbackCounter + p.String()})
		}
	}
	return out
}

// compare orders NodePorts of one family.
func (k listenerKey) compare(o listenerKey) int {
	return cmp.Or(cmp.Compare(k.protocol, o.protocol), cmp.Compare(k.port, o.port))
}
