package object

import (
	"encoding/binary"
	"time"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// objectAttrs are the attributes of an object by their number. Those of all kinds
// are numbered from 1 and few.
type objectAttrs [8][]byte

// objectText returns the text of an object of the kernel's.
func objectText(family nft.Family, typ uint32, data []byte) (string, error) {
	var a objectAttrs
	err := expr.EachAttr(data, func(typ uint16, v []byte) error {
		if int(typ) < len(a) {
			a[typ] = v
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	body, err := a.body(family, typ)
	if err != nil {
		return "", err
	}
	return syntax.PrintObject(body), nil
}

// body is the inverse of encodeObject.
func (a *objectAttrs) body(family nft.Family, typ uint32) (syntax.ObjectBody, error) {
	switch typ {
	case objectCounter:
		return &syntax.Counter{Packets: a.number(unix.NFTA_COUNTER_PACKETS), Bytes: a.number(unix.NFTA_COUNTER_BYTES)}, nil
	case objectQuota:
		return expr.QuotaOf(&expr.Quota{
			Bytes: a.number(unix.NFTA_QUOTA_BYTES), Consumed: a.number(unix.NFTA_QUOTA_CONSUMED),
			Over: a.number(unix.NFTA_QUOTA_FLAGS)&expr.QuotaInvert != 0,
		}), nil
	case objectLimit:
		return a.limit()
	case objectCTHelper:
		o := &syntax.HelperBody{
			Type: textOf(a[nftaCTHelperName]), Protocol: a.protocol(nftaCTHelperL4Proto), L3Proto: a.l3proto(nftaCTHelperL3Proto, family),
		}
		if o.L3Proto == "bridge" || o.L3Proto == "netdev" {
			// To the kernel a helper of these is one for both versions of IP.
			o.L3Proto = "inet"
		}
		return o, nil
	case objectCTTimeout:
		return a.timeout(family)
	case objectCTExpectation:
		o := &syntax.ExpectationBody{
			Protocol: a.protocol(nftaCTExpectL4Proto), DPort: uint16(a.number(nftaCTExpectDPort)), Size: uint8(a.number(nftaCTExpectSize)),
			L3Proto: a.l3proto(nftaCTExpectL3Proto, family),
		}
		if v := a[nftaCTExpectTimeout]; len(v) == 4 {
			o.Timeout = time.Duration(binary.NativeEndian.Uint32(v)) * time.Millisecond
		}
		return o, nil
	case objectSecMark:
		return &syntax.SecMarkBody{Context: textOf(a[nftaSecMarkCtx])}, nil
	case objectSynProxy:
		flags := a.number(expr.NftaSynProxyFlags)
		return &syntax.SynProxyBody{
			Given: flags&(expr.SynproxyMSS|expr.SynproxyWScale) != 0, MSS: uint16(a.number(expr.NftaSynProxyMSS)), WScale: uint8(a.number(expr.NftaSynProxyWScale)),
			Timestamp: flags&expr.SynproxyTimestamp != 0, SackPerm: flags&expr.SynproxySackPerm != 0,
		}, nil
	default:
		return nil, expr.ErrAttr
	}
}

// number returns a number of any width in network byte order; 0 where there is none.
func (a *objectAttrs) number(typ int) uint64 {
	var n uint64
	for _, c := range a[typ] {
		n = n<<8 | uint64(c)
	}
	return n
}

// protocol returns the name of a transport protocol.
func (a *objectAttrs) protocol(typ int) string {
	if a.number(typ) == unix.IPPROTO_UDP {
		return "udp"
	}
	return "tcp"
}

// l3proto returns the family that the object is for: that of the table where none
// is given.
func (a *objectAttrs) l3proto(typ int, family nft.Family) string {
	if len(a[typ]) == 2 {
		family = nft.Family(a.number(typ))
	}
	return family.String()
}

func (a *objectAttrs) limit() (syntax.ObjectBody, error) {
	return expr.LimitOf(&google.Limit{
		Type: google.LimitType(a.number(unix.NFTA_LIMIT_TYPE)), Rate: a.number(unix.NFTA_LIMIT_RATE),
		Over: a.number(unix.NFTA_LIMIT_FLAGS)&unix.NFT_LIMIT_F_INV != 0,
		Unit: google.LimitTime(a.number(unix.NFTA_LIMIT_UNIT)), Burst: uint32(a.number(unix.NFTA_LIMIT_BURST)),
	})
}

func (a *objectAttrs) timeout(family nft.Family) (syntax.ObjectBody, error) {
	o := &syntax.TimeoutBody{Protocol: a.protocol(nftaCTTimeoutL4Proto), L3Proto: a.l3proto(nftaCTTimeoutL3Proto, family)}
	states := statesOf(layer4(o.Protocol))
	err := expr.EachAttr(a[nftaCTTimeoutData], func(typ uint16, v []byte) error {
		i := int(typ) - 1
		if i < 0 || i >= len(states) {
			return nil
		}
		seconds, err := expr.AttrU32(v)
		if err == nil && seconds != states[i].seconds {
			o.Policy = append(o.Policy, syntax.StateTimeout{State: states[i].state, Seconds: seconds})
		}
		return err
	})
	return o, err
}

// textOf returns a string up to its NUL, if it has one.
func textOf(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
