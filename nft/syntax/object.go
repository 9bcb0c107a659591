package syntax

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/internal/scan"
)

// ObjectBody is the body of a named object. Missing fields are zero.
type ObjectBody interface {
	// As in nft(8), a statement overrides an earlier one.
	parseBody(p *parser)
	printBody(p *printer)
}

var newBody = map[nft.ObjectKind]func() ObjectBody{
	nft.ObjectCounter:       func() ObjectBody { return &Counter{} },
	nft.ObjectQuota:         func() ObjectBody { return &Quota{} },
	nft.ObjectLimit:         func() ObjectBody { return &Limit{} },
	nft.ObjectCTHelper:      func() ObjectBody { return &HelperBody{} },
	nft.ObjectCTTimeout:     func() ObjectBody { return &TimeoutBody{} },
	nft.ObjectCTExpectation: func() ObjectBody { return &ExpectationBody{} },
	nft.ObjectSecMark:       func() ObjectBody { return &SecMarkBody{} },
	nft.ObjectSynProxy:      func() ObjectBody { return &SynProxyBody{} },
}

// ParseObject parses a body, which may be empty. For an unknown kind the *Error has no position.
func ParseObject(kind nft.ObjectKind, text string) (ObjectBody, error) {
	empty, ok := newBody[kind]
	if !ok {
		return nil, &Error{Msg: fmt.Sprintf("unknown kind of object %q", kind)}
	}
	p, body := newParser(text), empty()
	for p.SkipEnds(); p.Tok.Kind != scan.EOF; p.SkipEnds() {
		body.parseBody(p)
	}
	return result(p, body, "")
}

// PrintObject returns the canonical form, separated by "; ".
func PrintObject(body ObjectBody) string {
	p := &printer{}
	body.printBody(p)
	return p.b.String()
}

// attribute puts "; " before a value unless it is the first, and skips an empty value.
func (p *printer) attribute(name, value string) {
	if value == "" {
		return
	}
	if p.b.Len() > 0 {
		p.str("; ")
	}
	p.str(name, " ", value)
}

func (p *printer) number(name string, n uint64) {
	if n != 0 {
		p.attribute(name, fmt.Sprint(n))
	}
}

func (p *parser) bodyEnd() {
	if p.Tok.Kind != scan.EOF && p.Tok.Kind != scan.Newline && p.Tok.Kind != scan.Semicolon {
		p.Unexpected("the end of the line or \";\"")
	}
}

func (p *parser) l3proto() string {
	return p.OneOf("ip", "ip6", "inet", "arp", "bridge", "netdev")
}

// MaxHelper is NF_CT_HELPER_NAME_LEN without NUL.
const MaxHelper = 15

// HelperBody is the body of a ct helper: `type "ftp" protocol tcp; l3proto ip`.
type HelperBody struct {
	Type, Protocol, L3Proto string
}

func (o *HelperBody) parseBody(p *parser) {
	if p.OneOf("type", "l3proto") == "l3proto" {
		o.L3Proto = p.l3proto()
		p.bodyEnd()
		return
	}
	at := p.Tok
	if at.Kind != scan.String {
		p.Unexpected("the name of a helper in double quotes")
		return
	}
	if o.Type = at.Text; len(o.Type) == 0 || len(o.Type) > MaxHelper {
		p.Fail(at, "name %q of a helper has %d bytes: want 1 to %d", o.Type, len(o.Type), MaxHelper)
	}
	p.Advance()
	p.OneOf("protocol")
	o.Protocol = p.OneOf("tcp", "udp")
	p.bodyEnd()
}

func (o *HelperBody) printBody(p *printer) {
	if o.Type != "" {
		p.attribute("type", `"`+o.Type+`" protocol `+o.Protocol)
	}
	p.attribute("l3proto", o.L3Proto)
}

// TimeoutBody is the body of a ct timeout: "protocol tcp; policy = { established : 100 }".
type TimeoutBody struct {
	Protocol, L3Proto string
	Policy            []StateTimeout
}

// StateTimeout is a connection's timeout in a state.
type StateTimeout struct {
	Pos
	State   string
	Seconds uint32
}

func (o *TimeoutBody) parseBody(p *parser) {
	switch p.OneOf("protocol", "l3proto", "policy") {
	case "protocol":
		o.Protocol = p.OneOf("tcp", "udp")
	case "l3proto":
		o.L3Proto = p.l3proto()
	case "policy":
		p.ExpectPunct("=")
		o.parsePolicy(p)
	}
	p.bodyEnd()
}

// nft(8) lists empty braces if all timeouts are the kernel's.
func (o *TimeoutBody) parsePolicy(p *parser) {
	if !p.IsPunct("{") {
		p.Unexpected(`"{"`)
		return
	}
	p.open()
	for p.err == nil && !p.IsPunct("}") {
		t := StateTimeout{Pos: p.Tok.Pos}
		t.State = p.ExpectIdent("a state such as established")
		p.ExpectPunct(":")
		if d, ok := p.Tok.Duration(); ok && d%time.Second == 0 && d/time.Second <= math.MaxUint32 {
			// since nft 1.0.9
			t.Seconds = uint32(d / time.Second)
			p.Advance()
		} else {
			t.Seconds = p.uint32("a number of seconds, or a time such as 5m")
		}
		o.Policy = append(o.Policy, t)
		if !p.AcceptPunct(",") {
			break
		}
		if p.IsPunct("}") {
			p.Unexpected("a state such as established")
		}
	}
	p.close("}")
}

func (o *TimeoutBody) printBody(p *printer) {
	p.attribute("protocol", o.Protocol)
	p.attribute("l3proto", o.L3Proto)
	if len(o.Policy) == 0 {
		return
	}
	states := make([]string, len(o.Policy))
	for i, t := range o.Policy {
		states[i] = fmt.Sprintf("%s : %d", t.State, t.Seconds)
	}
	p.attribute("policy", "= { "+strings.Join(states, ", ")+" }")
}

// ExpectationBody is the body of a ct expectation: "protocol tcp; dport 9876; size 12".
type ExpectationBody struct {
	Protocol, L3Proto string
	DPort             uint16
	Timeout           time.Duration
	Size              uint8
}

func (o *ExpectationBody) parseBody(p *parser) {
	switch p.OneOf("protocol", "dport", "timeout", "size", "l3proto") {
	case "protocol":
		o.Protocol = p.OneOf("tcp", "udp")
	case "dport":
		o.DPort = uint16(p.ExpectNumber("a port", 16))
	case "timeout":
		at := p.Tok
		if o.Timeout = p.ExpectTime(); o.Timeout.Milliseconds() >= 1<<32 {
			// the kernel stores milliseconds in 32 bits
			p.Fail(at, "time %s is too long: want less than 49 days", at.Text)
		}
	case "size":
		o.Size = uint8(p.ExpectNumber("a number of expectations", 8))
	case "l3proto":
		o.L3Proto = p.l3proto()
	}
	p.bodyEnd()
}

func (o *ExpectationBody) printBody(p *printer) {
	p.attribute("protocol", o.Protocol)
	p.number("dport", uint64(o.DPort))
	if o.Timeout != 0 {
		p.attribute("timeout", datatype.FormatDuration(o.Timeout))
	}
	p.number("size", uint64(o.Size))
	p.attribute("l3proto", o.L3Proto)
}

// MaxSecContext is NFT_SECMARK_CTX_MAXLEN without NUL.
const MaxSecContext = 255

// SecMarkBody is a security context in double quotes.
type SecMarkBody struct{ Context string }

func (o *SecMarkBody) parseBody(p *parser) {
	at := p.Tok
	o.Context = p.ExpectText("a security context in double quotes")
	if len(o.Context) == 0 || len(o.Context) > MaxSecContext {
		p.Fail(at, "security context %.40q has %d bytes: want 1 to %d", o.Context, len(o.Context), MaxSecContext)
	}
}

func (o *SecMarkBody) printBody(p *printer) {
	if o.Context != "" {
		p.quote(o.Context)
	}
}

// SynProxyBody is the body of a synproxy: "mss 1460 wscale 7 timestamp sack-perm".
type SynProxyBody struct {
	// true with an mss and a wscale
	Given               bool
	MSS                 uint16
	WScale              uint8
	Timestamp, SackPerm bool
}

// An end mark may follow the mss and the wscale.
func (o *SynProxyBody) parseBody(p *parser) {
	*o = SynProxyBody{Given: true}
	p.OneOf("mss")
	o.MSS = uint16(p.ExpectNumber("a segment size", 16))
	p.SkipEnds()
	p.OneOf("wscale")
	o.WScale = uint8(p.ExpectNumber("a window scale", 8))
	p.SkipEnds()
	o.Timestamp = p.AcceptIdent("timestamp")
	o.SackPerm = p.AcceptIdent("sack-perm")
}

func (o *SynProxyBody) printBody(p *printer) {
	if !o.Given {
		return
	}
	p.str("mss ")
	p.num(uint64(o.MSS))
	p.option("wscale", uint64(o.WScale))
	p.synproxyFlags(o.Timestamp, o.SackPerm)
}
