package object

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Attributes of a ct timeout (enum nft_ct_timeout_attributes).
const (
	nftaCTTimeoutL3Proto = 1
	nftaCTTimeoutL4Proto = 2
	nftaCTTimeoutData    = 3
)

// stateTimeout is a state of conntrack with nft's timeout in seconds. Its
// attribute is its index plus one (CTA_TIMEOUT_TCP_SYN_SENT,
// CTA_TIMEOUT_UDP_UNREPLIED).
type stateTimeout struct {
	state   string
	seconds uint32
}

// The states whose timeouts nft sets.
var (
	tcpStates = []stateTimeout{
		{"syn_sent", 120}, {"syn_recv", 60}, {"established", 432000}, {"fin_wait", 120}, {"close_wait", 60}, {"last_ack", 30},
		{"time_wait", 120}, {"close", 10}, {"syn_sent2", 120}, {"retrans", 300}, {"unack", 300},
	}
	udpStates = []stateTimeout{{"unreplied", 30}, {"replied", 120}}
)

// statesOf returns the states of a transport protocol.
func statesOf(protocol string) []stateTimeout {
	if protocolNumber(protocol) == unix.IPPROTO_UDP {
		return udpStates
	}
	return tcpStates
}

func encodeTimeout(_ nft.Family, body syntax.ObjectBody) ([]byte, error) {
	o := body.(*syntax.TimeoutBody)
	if o.Protocol == "" {
		return nil, syntax.ErrorAt(start, "a ct timeout has a protocol: write protocol tcp or protocol udp")
	}
	states := slices.Clone(statesOf(o.Protocol))
	for _, t := range o.Policy {
		i := slices.IndexFunc(states, func(s stateTimeout) bool { return s.state == t.State })
		if i < 0 {
			return nil, syntax.ErrorAt(t.Pos, "unknown state %q of protocol %s: want %s", t.State, o.Protocol, joinStates(states))
		}
		states[i].seconds = t.Seconds
	}
	b, err := appendL3Proto(nil, nftaCTTimeoutL3Proto, o.L3Proto)
	if err != nil {
		return nil, err
	}
	b = attr.AppendUint8(b, nftaCTTimeoutL4Proto, protocolNumber(o.Protocol))
	b, at := attr.OpenNested(b, nftaCTTimeoutData)
	for i, s := range states {
		b = attr.AppendUint32BE(b, uint16(i+1), s.seconds)
	}
	return attr.Close(b, at), nil
}

func decodeTimeout(family nft.Family, a attributes) (syntax.ObjectBody, error) {
	o := &syntax.TimeoutBody{Protocol: a.protocol(nftaCTTimeoutL4Proto), L3Proto: a.l3proto(nftaCTTimeoutL3Proto, family)}
	states := statesOf(o.Protocol)
	r := attr.NewReader(a.byType[nftaCTTimeoutData])
	for r.Next() {
		if i := int(r.Type()) - 1; i >= 0 && i < len(states) {
			if seconds := r.Uint32BE(); seconds != states[i].seconds {
				o.Policy = append(o.Policy, syntax.StateTimeout{State: states[i].state, Seconds: seconds})
			}
		}
	}
	return o, r.Err()
}

// joinStates lists the names of states for an error.
func joinStates(states []stateTimeout) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.state
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
