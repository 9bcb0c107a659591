package render

import "github.com/weft-proxy/weft/frontends/policy/model"

type lookup uint8

const (
	ingress = lookup(model.Ingress)
	egress  = lookup(model.Egress)
	// untracked judges packets from a pod to its node without connection tracking, such as to a DNS
	// cache with notrack rules. It applies the egress policies to the headers, without rules for
	// pods.
	untracked  = egress + 1
	numLookups = untracked + 1
)

var mapNames = [numLookups]string{ingress: "ingress", egress: "egress", untracked: "untracked"}

func (l lookup) direction() model.Direction { return min(model.Direction(l), model.Egress) }

func (l lookup) prefix() string { return mapNames[l] }

func (f *family) source(l lookup) string {
	if l == untracked {
		return f.table + " saddr"
	}
	return f.opener
}

// destination returns the field of the end after destination NAT.
func (f *family) destination(l lookup) string {
	if l == untracked {
		return f.table + " daddr"
	}
	return f.responder
}

func (f *family) peer(l lookup) string {
	if l == ingress {
		return f.source(l)
	}
	return f.destination(l)
}

// nft accepts the port of a connection's tuple only after a match of the protocol.
func (l lookup) port() string {
	if l == untracked {
		return "th dport"
	}
	return "ct reply proto-src"
}
