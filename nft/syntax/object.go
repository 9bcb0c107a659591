package syntax

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-proxy/weft/nft"
)

// ObjectBody is what stands between the braces of a named object's declaration: a
// *Counter, *Limit, *Quota, *HelperBody, *TimeoutBody, *ExpectationBody,
// *SecMarkBody or *SynProxyBody. What was not given is zero.
type ObjectBody interface{ object() }

// HelperBody is the body of a ct helper: `type "ftp" protocol tcp; l3proto ip`.
type HelperBody struct {
	Type, Protocol, L3Proto string
}

// TimeoutBody is the body of a ct timeout: "protocol tcp; l3proto ip; policy = {
// established : 100 }".
type TimeoutBody struct {
	Protocol, L3Proto string
	Policy            []StateTimeout
}

// StateTimeout is how long a connection in a state is kept.
type StateTimeout struct {
	Pos
	State   string
	Seconds uint32
}

// ExpectationBody is the body of a ct expectation: "protocol tcp; dport 9876;
// timeout 2m; size 12; l3proto ip".
type ExpectationBody struct {
	Protocol, L3Proto string
	DPort             uint16
	Timeout           time.Duration
	Size              uint8
}

// SecMarkBody is the body of a secmark: a security context in double quotes.
type SecMarkBody struct{ Context string }

// SynProxyBody is the body of a synproxy: "mss 1460 wscale 7 timestamp sack-perm".
type SynProxyBody struct {
	// Given is true where there is an mss and a wscale.
	Given               bool
	MSS                 uint16
	WScale              uint8
	Timestamp, SackPerm bool
}

func (*Counter) object()         {}
func (*Limit) object()           {}
func (*Quota) object()           {}
func (*HelperBody) object()      {}
func (*TimeoutBody) object()     {}
func (*ExpectationBody) object() {}
func (*SecMarkBody) object()     {}
func (*SynProxyBody) object()    {}

// The bounds of names in objects, in bytes: those of nft(8) 1.0.6.
const (
	// MaxHelper is the longest name of a conntrack helper (NF_CT_HELPER_NAME_LEN
	// without its NUL).
	MaxHelper = 15
	// MaxSecContext is the longest security context (NFT_SECMARK_CTX_MAXLEN
	// without its NUL).
	MaxSecContext = 255
)

// ParseObject parses the body of an object's declaration. The error is an *Error.
func ParseObject(kind nft.ObjectKind, text string) (ObjectBody, error) {
	body := newBody(kind)
	if body == nil {
		return nil, &Error{Msg: fmt.Sprintf("unknown kind of object %q", kind)}
	}
	p := newParser(text)
	p.checkLength()
	for p.err == nil {
		for p.tok.Kind == Newline || p.tok.Kind == Semicolon {
			p.advance()
		}
		if p.tok.Kind == EOF {
			break
		}
		p.objectStatement(body)
	}
	if p.err != nil {
		return nil, p.err
	}
	return body, nil
}

// newBody returns an empty body of a kind; nil for an unknown kind.
func newBody(kind nft.ObjectKind) ObjectBody {
	switch kind {
	case nft.ObjectCounter:
		return &Counter{}
	case nft.ObjectQuota:
		return &Quota{}
	case nft.ObjectLimit:
		return &Limit{}
	case nft.ObjectCTHelper:
		return &HelperBody{}
	case nft.ObjectCTTimeout:
		return &TimeoutBody{}
	case nft.ObjectCTExpectation:
		return &ExpectationBody{}
	case nft.ObjectSecMark:
		return &SecMarkBody{}
	case nft.ObjectSynProxy:
		return &SynProxyBody{}
	default:
		return nil
	}
}

// PrintObject returns a body in canonical form: its statements, separated by "; ".
func PrintObject(body ObjectBody) string {
	var b strings.Builder
	switch o := body.(type) {
	case *Counter:
		fmt.Fprintf(&b, "packets %d bytes %d", o.Packets, o.Bytes)
	case *Limit:
		if o.Per == "" {
			return ""
		}
		p := printer{}
		p.limit(o)
		b.WriteString(strings.TrimPrefix(p.b.String(), "limit "))
	case *Quota:
		if o.Unit == "" {
			return ""
		}
		p := printer{}
		p.quota(o)
		b.WriteString(strings.TrimPrefix(p.b.String(), "quota "))
	case *HelperBody:
		if o.Type != "" {
			fmt.Fprintf(&b, "type \"%s\" protocol %s", o.Type, o.Protocol)
		}
		attribute(&b, "l3proto", o.L3Proto)
	case *TimeoutBody:
		o.print(&b)
	case *ExpectationBody:
		o.print(&b)
	case *SecMarkBody:
		if o.Context != "" {
			fmt.Fprintf(&b, "\"%s\"", o.Context)
		}
	case *SynProxyBody:
		o.print(&b)
	default:
		fmt.Fprintf(&b, "<unknown object %T>", body)
	}
	return b.String()
}
