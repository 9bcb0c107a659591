package render

import "github.com/weft-proxy/weft/frontends/policy/model"

// lookup is a map from a pod to the chain of its policies of a direction.
type lookup uint8

const (
	ingress = lookup(model.Ingress)
	egress  = lookup(model.Egress)
	// untracked judges packets that a pod sends to its node without connection tracking, such as
	// DNS to a cache with notrack rules. It applies the egress policies to the headers. No pod has
	// an address of the node, so rules for pods are left out.
	untracked  = egress + 1
	numLookups = untracked + 1
)

// mapNames are the names of the maps from the address of a pod to its chain.
var mapNames = [numLookups]string{ingress: "ingress", egress: "egress", untracked: "untracked"}

func (l lookup) direction() model.Direction { return min(model.Direction(l), model.Egress) }

// prefix starts the names of the chains of pods.
func (l lookup) prefix() string { return mapNames[l] }

// source matches the end that opened a connection, for packets of both directions.
func (t *table) source(l lookup) string {
	if l == untracked {
		return t.family.table + " saddr"
	}
	return t.family.source
}

// destination matches the end of a connection after destination NAT.
func (t *table) destination(l lookup) string {
	if l == untracked {
		return t.family.table + " daddr"
	}
	return t.family.destination
}

// peer matches the end of a connection that is not the pod of a rule.
func (t *table) peer(l lookup) string {
	if l == ingress {
		return t.source(l)
	}
	return t.destination(l)
}

// port matches the port of the destination. nft accepts the port of a connection's tuple only after
// a match of the protocol.
func (l lookup) port() string {
	if l == untracked {
		return "th dport"
	}
	return "ct reply proto-src"
}
