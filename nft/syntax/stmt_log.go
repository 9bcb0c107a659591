package syntax

import (
	"slices"

	"github.com/weft-proxy/weft/nft/internal/scan"
)

// Log logs the packet. A nil pointer means that the option was not given.
type Log struct {
	Pos
	Prefix *string
	// Level is empty or a syslog level such as "warn".
	Level string
	// Flags are "tcp sequence", "tcp options", "ip options", "skuid", "ether" or "all".
	Flags          []string
	Group          *uint32
	Snaplen        *uint32
	QueueThreshold *uint32
}

// log parses "log" and its options.
func (p *parser) log() Stmt {
	l := &Log{Pos: p.begin()}
	number := func(bits int) *uint32 { return new(uint32(p.ExpectNumber("a number", bits))) }
	for p.err == nil {
		switch {
		case p.AcceptIdent("prefix"):
			if p.Tok.Kind == scan.Addr || p.Tok.Kind == scan.Word {
				p.Tok.Kind = scan.String // such words need no quotes here
			}
			l.Prefix = new(p.ExpectText("a log prefix in double quotes"))
		case p.AcceptIdent("level"):
			if p.Tok.Kind == scan.String {
				p.Tok.Kind = scan.Ident // quotes have no meaning here
			}
			l.Level = p.OneOf("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit")
		case p.AcceptIdent("group"):
			l.Group = number(16)
		case p.AcceptIdent("snaplen"):
			l.Snaplen = number(32)
		case p.AcceptIdent("queue-threshold"):
			l.QueueThreshold = number(16)
		case p.AcceptIdent("flags"):
			p.logFlags(l)
		default:
			return l
		}
	}
	return l
}

// logFlags parses the flags after one "flags".
func (p *parser) logFlags(l *Log) {
	add := func(flag string) {
		if !slices.Contains(l.Flags, flag) {
			l.Flags = append(l.Flags, flag)
		}
	}
	switch flag := p.OneOf("tcp", "ip", "skuid", "ether", "all"); flag {
	case "tcp":
		add("tcp " + p.OneOf("sequence", "options"))
		for p.AcceptPunct(",") {
			add("tcp " + p.OneOf("sequence", "options"))
		}
	case "ip":
		add("ip " + p.OneOf("options"))
	default:
		add(flag)
	}
}

func (l *Log) printStmt(p *printer) {
	p.str("log")
	if l.Prefix != nil {
		p.str(" prefix ")
		p.quote(*l.Prefix)
	}
	if l.Level != "" {
		p.str(" level ", l.Level)
	}
	given(p, "group", l.Group)
	given(p, "snaplen", l.Snaplen)
	given(p, "queue-threshold", l.QueueThreshold)
	for _, f := range l.Flags {
		p.str(" flags ", f)
	}
}
