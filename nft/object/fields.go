package object

import (
	"slices"
	"time"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// fields describes NFTA_OBJ_DATA in nft's order; nil for kinds with an expression's attributes.
func fields(body syntax.ObjectBody) attr.Fields {
	switch o := body.(type) {
	case *syntax.HelperBody:
		return attr.Fields{
			attr.Always(unix.NFTA_CT_HELPER_NAME, (*attr.Unterminated)(&o.Type)),
			attr.If(o.L3Proto != "", unix.NFTA_CT_HELPER_L3PROTO, (*l3proto)(&o.L3Proto)),
			attr.Always(unix.NFTA_CT_HELPER_L4PROTO, (*l4proto)(&o.Protocol)),
		}
	case *syntax.TimeoutBody:
		return attr.Fields{
			attr.If(o.L3Proto != "", google.NFTA_CT_TIMEOUT_L3PROTO, (*l3proto)(&o.L3Proto)),
			attr.Always(google.NFTA_CT_TIMEOUT_L4PROTO, (*l4proto)(&o.Protocol)),
			attr.Always(google.NFTA_CT_TIMEOUT_DATA, (*policy)(o)),
		}
	case *syntax.ExpectationBody:
		return attr.Fields{
			attr.If(o.L3Proto != "", google.NFTA_CT_EXPECT_L3PROTO, (*l3proto)(&o.L3Proto)),
			attr.Always(google.NFTA_CT_EXPECT_L4PROTO, (*l4proto)(&o.Protocol)),
			attr.Always(google.NFTA_CT_EXPECT_DPORT, &o.DPort),
			attr.Always(google.NFTA_CT_EXPECT_TIMEOUT, (*nativeTime)(&o.Timeout)),
			attr.Always(google.NFTA_CT_EXPECT_SIZE, &o.Size),
		}
	case *syntax.SecMarkBody:
		return attr.Fields{attr.Always(google.NFTA_SECMARK_CTX, (*attr.Unterminated)(&o.Context))}
	case *syntax.SynProxyBody:
		return attr.Fields{
			attr.Always(google.NFTA_SYNPROXY_MSS, &o.MSS),
			attr.Always(google.NFTA_SYNPROXY_WSCALE, &o.WScale),
			attr.Always(google.NFTA_SYNPROXY_FLAGS, attr.Bits{
				{To: &o.Given, Mask: google.NF_SYNPROXY_OPT_MSS | google.NF_SYNPROXY_OPT_WSCALE},
				{To: &o.Timestamp, Mask: google.NF_SYNPROXY_OPT_TIMESTAMP}, {To: &o.SackPerm, Mask: google.NF_SYNPROXY_OPT_SACK_PERM},
			}),
		}
	default:
		return nil
	}
}

type l3proto string

func (p *l3proto) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	family, err := nft.ParseFamily(string(*p))
	if err != nil {
		return nil, syntax.ErrorAt(start, "l3proto: %s", err)
	}
	return attr.AppendUint16BE(b, typ, uint16(family)), nil
}

func (p *l3proto) ReadAttr(r *attr.Reader) error {
	*p = l3proto(nft.Family(r.Uint16BE()).String())
	return nil
}

type l4proto string

func (p *l4proto) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	if *p == "udp" {
		return attr.AppendUint8(b, typ, unix.IPPROTO_UDP), nil
	}
	return attr.AppendUint8(b, typ, unix.IPPROTO_TCP), nil
}

func (p *l4proto) ReadAttr(r *attr.Reader) error {
	*p = "tcp"
	if r.Uint8() == unix.IPPROTO_UDP {
		*p = "udp"
	}
	return nil
}

// nativeTime is in milliseconds in the machine's byte order, unlike other numbers of nf_tables.
type nativeTime time.Duration

func (t *nativeTime) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	return attr.AppendUint32NE(b, typ, uint32(time.Duration(*t).Milliseconds())), nil
}

func (t *nativeTime) ReadAttr(r *attr.Reader) error {
	*t = nativeTime(r.Uint32NE()) * nativeTime(time.Millisecond)
	return nil
}

type policy syntax.TimeoutBody

func (o *policy) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	states := slices.Clone(statesOf(o.Protocol))
	for _, t := range o.Policy {
		i := slices.IndexFunc(states, func(s stateTimeout) bool { return s.state == t.State })
		if i < 0 {
			return nil, syntax.ErrorAt(t.Pos, "unknown state %q of protocol %s: want %s", t.State, o.Protocol, joinStates(states))
		}
		states[i].seconds = t.Seconds
	}
	b, at := attr.OpenNested(b, typ)
	for i, s := range states {
		b = attr.AppendUint32BE(b, uint16(i+1), s.seconds)
	}
	return attr.Close(b, at), nil
}

func (o *policy) ReadAttr(r *attr.Reader) error {
	states := statesOf(o.Protocol)
	list := r.Nested()
	for list.Next() {
		if i := int(list.Type()) - 1; i >= 0 && i < len(states) {
			if seconds := list.Uint32BE(); seconds != states[i].seconds {
				o.Policy = append(o.Policy, syntax.StateTimeout{State: states[i].state, Seconds: seconds})
			}
		}
	}
	return list.Err()
}
