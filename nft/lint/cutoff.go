package lint

import (
	"encoding/binary"
	"fmt"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/eval"
)

// Need is TCP traffic required by the node.
type Need struct {
	// such as "SSH"
	Name string
	// Port is the server's port; the node is the client or the server.
	Port   uint16
	Client bool
}

// NodeNeeds are for a Kubernetes node with the usual ports.
var NodeNeeds = []Need{{Name: "SSH", Port: 22}, {Name: "its kubelet", Port: 10250}, {Name: "its API server", Port: 6443, Client: true}}

// A table of IPv6 alone does not cut off the node, which is reachable over IPv4.
func (l *linter) cutOff(needs []Need) {
	for i := range l.rules.Tables {
		t := &l.rules.Tables[i]
		for j := range t.Chains {
			c := &t.Chains[j]
			base := c.Decl.Base
			if t.Dormant || base == nil || base.Type != "filter" || t.ID.Family != nft.FamilyIP && t.ID.Family != nft.FamilyInet {
				continue
			}
			for _, n := range needs {
				switch {
				case base.Hook == unix.NF_INET_LOCAL_IN:
					l.cutsOff(eval.BaseChain{Table: t, Chain: c, Base: base}, n, n.Client)
				case base.Hook == unix.NF_INET_LOCAL_OUT && n.Client:
					l.cutsOff(eval.BaseChain{Table: t, Chain: c, Base: base}, n, false)
				}
			}
		}
	}
}

// cutsOff reports a chain that drops all packets in all its families. answer selects packets from
// the server.
func (l *linter) cutsOff(b eval.BaseChain, n Need, answer bool) {
	families := []nft.Family{b.Table.ID.Family}
	if b.Table.ID.Family == nft.FamilyInet {
		families = []nft.Family{nft.FamilyIP, nft.FamilyIP6}
	}
	var found Finding
	var last *eval.Step
	for _, f := range families {
		var p eval.Packet
		if p, last = l.dropsAll(b, f, n, answer); last == nil {
			return
		}
		if found.Example == "" {
			found.Example = describe(&p)
		}
	}
	at := l.place(b.Table, b.Chain, nil)
	if last.Matched != nil {
		at = l.place(b.Table, l.chainOf(b.Table, last.Chain), last.Matched)
	}
	what := fmt.Sprintf("connections to TCP port %d", n.Port)
	switch {
	case answer:
		what = fmt.Sprintf("answers from TCP port %d", n.Port)
	case n.Client:
		what = fmt.Sprintf("packets to TCP port %d", n.Port)
	}
	found.ID, found.Subject, found.Other = CutOff, at, Place{Chain: n.Name}
	found.Text = fmt.Sprintf("%s drops all %s, and so cuts the node off from %s", at.Party, what, n.Name)
	found.Remedy = fmt.Sprintf("Accept them in chain %s of table %s before the drop", b.Chain.Decl.Name, b.Table.ID)
	l.report(found, last.Matched)
}

// dropsAll returns a nil step if another rule accepts some packets from any source.
func (l *linter) dropsAll(b eval.BaseChain, family nft.Family, n Need, answer bool) (p eval.Packet, last *eval.Step) {
	needed := func(way []step) (p eval.Packet, possible, open bool) {
		s := newSolver(b.Table)
		s.need(family, n.Port, answer)
		for _, at := range way {
			s.rule(at.rule, at.to)
		}
		return s.packet(family, b.Base.Hook), !s.contradicted && !s.excluded, s.open
	}
	p, _, _ = needed(nil)
	last, out, ok := l.ending(b, p)
	if !ok || out.Verdict != eval.Drop {
		return p, nil
	}
	trials, passes := maxTrials, false
	l.walk(b, func(way []step, _ *eval.Chain) bool {
		v, ok := verdictOf(way[len(way)-1].rule)
		if ok && v.Code != datatype.VerdictAccept {
			return true
		}
		p, possible, open := needed(way)
		if !possible || p.In.Name == "lo" {
			return true
		}
		// undecided packets may pass, and so may packets matched later by a now empty set
		_, out, ok = l.ending(b, p)
		passes = open || !ok || out.Verdict == eval.Accept
		trials--
		return !passes && trials > 0
	})
	if passes || trials == 0 {
		return p, nil
	}
	return p, last
}

func (s *solver) need(family nft.Family, port uint16, answer bool) {
	s.require(google.MetaKeyNFPROTO, []byte{byte(family)})
	s.require(google.MetaKeyL4PROTO, []byte{unix.IPPROTO_TCP})
	source, destination, state, direction := uint16(anySourcePort), port, uint32(eval.StateNew), byte(0)
	if answer {
		source, destination, state, direction = port, anySourcePort, eval.StateEstablished, 1
	}
	if x, ok := newOperand(&s.transport, 0, 4); ok {
		x.set(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, source), destination), true)
	}
	if x, ok := newOperand(fieldOf(s.ct, unix.NFT_CT_STATE), 0, 4); ok {
		x.set(binary.NativeEndian.AppendUint32(nil, state), true)
	}
	if x, ok := newOperand(fieldOf(s.ct, unix.NFT_CT_DIRECTION), 0, 1); ok {
		x.set([]byte{direction}, true)
	}
}
