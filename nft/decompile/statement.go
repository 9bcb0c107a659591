package decompile

import (
	"encoding/binary"
	"math/big"
	"slices"
	"strings"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/syntax"
)

func (d *decompiler) stmt(e any) bool {
	switch e := e.(type) {
	case *google.Verdict:
		kind, chain, _ := strings.Cut(datatype.Verdict.Format(append(binary.BigEndian.AppendUint32(nil, uint32(e.Kind)), e.Chain...)), " ")
		d.add(&syntax.Verdict{Kind: kind, Chain: chain})
	case *google.Counter, *google.Limit, *google.Quota, *google.Connlimit:
		s, err := expr.StatefulStmt(expr.Library{Any: e.(google.Any)})
		if err != nil {
			panic(failure{err})
		}
		d.add(s)
	case *expr.Log:
		d.log(e)
	case *google.Reject:
		d.reject(e)
	case *expr.NAT:
		d.nat(e)
	case *google.Redir:
		d.add(&syntax.NAT{Kind: "redirect", Port: d.span("redir", e.RegisterProtoMin, e.RegisterProtoMax, port), Flags: natFlags(e.Flags)})
	case *google.Notrack:
		d.add(&syntax.Notrack{})
	case *expr.Objref:
		d.objref(object.KindOf(e.Type), &syntax.Const{Text: e.Name, Quoted: true})
	case *google.SynProxy:
		s := &syntax.SynProxy{Timestamp: e.Timestamp, SackPerm: e.SackPerm}
		if e.MssValueSet {
			s.MSS = &e.Mss
		}
		if e.WscaleValueSet {
			s.WScale = &e.Wscale
		}
		d.add(s)
	case *expr.Dynset:
		d.dynset(e)
	case *expr.ObjrefMap:
		d.objrefMap(e)
	case *expr.PayloadWrite:
		d.payloadWrite(e.Base, e.Offset, e.Len, e.Source)
	case *expr.Masq:
		d.add(&syntax.NAT{Kind: "masquerade", Port: d.span("masq", e.MinPort, e.MaxPort, port), Flags: natFlags(e.Flags)})
	case *expr.FlowOffload:
		d.add(&syntax.FlowAdd{Flowtable: e.Flowtable})
	case *expr.Queue:
		d.queue(e)
	case *expr.Dup:
		s := &syntax.Dup{}
		if d.family == nft.FamilyNetdev {
			s.To = d.argument("dup", e.Device, device)
		} else {
			s.To = d.argument("dup", e.Addr, address(uint32(d.family)))
			if e.Device != 0 {
				s.Device = d.argument("dup", e.Device, device)
			}
		}
		d.add(s)
	case *expr.Fwd:
		s := &syntax.Fwd{Device: d.argument("fwd", e.Device, device), Family: familyWord(e.Family)}
		if e.Addr != 0 {
			s.Addr = d.argument("fwd", e.Addr, address(e.Family))
		}
		d.add(s)
	case *expr.TProxy:
		s := &syntax.TProxy{Addr: d.span("tproxy", e.Addr, 0, address(e.Family)), Port: d.span("tproxy", e.Port, 0, port)}
		if d.family == nft.FamilyInet {
			s.Family = familyWord(e.Family)
		}
		d.add(s)
	default:
		return false
	}
	return true
}

var (
	port   = &value{typ: datatype.InetService, bits: 16, order: datatype.BigEndian}
	device = &value{typ: datatype.IfIndex, bits: 32, order: datatype.HostEndian}
)

func address(family uint32) *value {
	typ := datatype.IPv4Addr
	if family == unix.NFPROTO_IPV6 {
		typ = datatype.IPv6Addr
	}
	return &value{typ: typ, bits: typ.Bits, order: typ.Order}
}

func familyWord(family uint32) string {
	if f := nft.Family(family); f == nft.FamilyIP || f == nft.FamilyIP6 {
		return f.String()
	}
	return ""
}

// span returns a register's value, the range of two constants, or nil for register 0.
func (d *draft) span(name string, low, high uint32, v *value) syntax.Expr {
	if low == 0 {
		return nil
	}
	if high != 0 {
		from, to := d.get(name, low), d.get(name, high)
		if from.data == nil || to.data == nil {
			fail(name, "the range is not of constants")
		}
		return v.span(from.data, to.data)
	}
	return d.argument(name, low, v)
}

func (d *decompiler) nat(e *expr.NAT) {
	prefix := e.Flags&unix.NF_NAT_RANGE_NETMAP != 0
	s := &syntax.NAT{Kind: word("nat", e.Type, "snat", "dnat"), Prefix: prefix, Flags: natFlags(e.Flags)}
	if e.AddrMin != 0 && (d.family == nft.FamilyInet || prefix) {
		s.Family = familyWord(e.Family)
	}
	if e.AddrMin == 0 {
		s.Port = d.span("nat", e.PortMin, e.PortMax, port)
		d.add(s)
		return
	}
	first := d.get("nat", e.AddrMin)
	_, isMap := first.x.(*syntax.Map)
	at := slot("nat", e.AddrMin) + (int(address(e.Family).bits)+31)/32
	switch {
	case isMap:
		// the registers after the address belong to the map's data
		s.Addr = first.expr()
		if e.PortMin != 0 && d.regs[slot("nat", e.PortMin)] == nil {
			s.Family = familyWord(e.Family)
		} else {
			s.Port = d.span("nat", e.PortMin, e.PortMax, port)
		}
	case e.PortMin != 0 && slot("nat", e.PortMin) == at && at%4 != 0:
		s.AddrPort, s.Family = true, familyWord(e.Family)
		s.Addr = &syntax.Concat{Parts: []syntax.Expr{d.argument("nat", e.AddrMin, address(e.Family)), d.argument("nat", e.PortMin, port)}}
	default:
		s.Addr = d.span("nat", e.AddrMin, e.AddrMax, address(e.Family))
		if e.AddrMax != 0 {
			s.Addr = prefixOf(address(e.Family), first.data, d.get("nat", e.AddrMax).data, s.Addr)
		}
		s.Port = d.span("nat", e.PortMin, e.PortMax, port)
	}
	d.add(s)
}

// prefixOf returns a prefix, if possible, or else span.
func prefixOf(v *value, from, to []byte, span syntax.Expr) syntax.Expr {
	low, high := v.number(from), v.number(to)
	differ := new(big.Int).Xor(low, high)
	bits := uint(differ.BitLen())
	if len(from) != len(to) || differ.Cmp(ones(bits)) != 0 || new(big.Int).And(low, ones(bits)).Sign() != 0 {
		return span
	}
	return &syntax.Prefix{X: v.constant(from), Len: 8*len(from) - int(bits)}
}

func natFlags(flags uint32) []string {
	return slices.Sorted(slices.Values(expr.Words(flags, expr.NATFlags)))
}

func (d *decompiler) log(e *expr.Log) {
	s := &syntax.Log{Prefix: e.Prefix}
	if e.Level != nil {
		s.Level = word("log", *e.Level, syntax.LogLevels...)
	}
	if e.Group != nil {
		s.Group, s.Snaplen, s.QueueThreshold = e.Group, e.Snaplen, e.QThreshold
	}
	switch {
	case e.Flags == nil:
	case *e.Flags == expr.LogFlagsAll:
		s.Flags = []string{"all"}
	default:
		s.Flags = expr.Words(*e.Flags, expr.LogFlags)
	}
	d.add(s)
}

// reject leaves out the usual answer, as nft does.
func (d *decompiler) reject(e *google.Reject) {
	s := &syntax.Reject{}
	with := func(words string, codes *datatype.Type, usual bool) {
		if !usual {
			s.With, s.Code = words, &syntax.Const{Text: codes.Format([]byte{e.Code})}
		}
	}
	switch {
	case e.Type == unix.NFT_REJECT_TCP_RST:
		s.With = "tcp reset"
	case e.Type == unix.NFT_REJECT_ICMPX_UNREACH:
		with("icmpx", datatype.ICMPxCode, e.Code == 1 && d.network == nil)
	case e.Type == unix.NFT_REJECT_ICMP_UNREACH && (d.family == nft.FamilyIP6 || d.network != nil && d.network.Name == "ip6"):
		with("icmpv6", datatype.ICMPv6Code, e.Code == 4 && d.family == nft.FamilyIP6)
	case e.Type == unix.NFT_REJECT_ICMP_UNREACH:
		with("icmp", datatype.ICMPCode, e.Code == 3 && d.family == nft.FamilyIP)
	default:
		fail("reject", "the kind of answer is not known")
	}
	d.add(s)
}

func (d *decompiler) queue(e *expr.Queue) {
	s := &syntax.Queue{Flags: expr.Words(uint32(e.Flags), syntax.QueueFlags)}
	num := func(n uint16) syntax.Expr { return &syntax.Const{Text: big.NewInt(int64(n)).String()} }
	switch {
	case e.Register != 0:
		s.Num = d.argument("queue", e.Register, number(nil))
	case e.Total > 1:
		s.Num = &syntax.Range{From: num(e.Num), To: num(e.Num + e.Total - 1)}
	case e.Flags&unix.NFT_QUEUE_FLAG_CPU_FANOUT == 0: // which needs a range
		s.Num = num(e.Num)
	}
	d.add(s)
}
