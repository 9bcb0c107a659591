package object

import "strings"

// stateTimeout has nft's timeout in seconds. The attribute is the index plus one
// (CTA_TIMEOUT_TCP_SYN_SENT, CTA_TIMEOUT_UDP_UNREPLIED).
type stateTimeout struct {
	state   string
	seconds uint32
}

var (
	tcpStates = []stateTimeout{
		{"syn_sent", 120}, {"syn_recv", 60}, {"established", 432000}, {"fin_wait", 120}, {"close_wait", 60}, {"last_ack", 30},
		{"time_wait", 120}, {"close", 10}, {"syn_sent2", 120}, {"retrans", 300}, {"unack", 300},
	}
	udpStates = []stateTimeout{{"unreplied", 30}, {"replied", 120}}
)

func statesOf(protocol string) []stateTimeout {
	if protocol == "udp" {
		return udpStates
	}
	return tcpStates
}

func joinStates(states []stateTimeout) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.state
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
