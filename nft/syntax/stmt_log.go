package syntax

import (
	"slices"

	"github.com/weft-proxy/weft/nft/internal/scan"
)

// Log logs the packet. Options that were not given are nil.
type Log struct {
	Pos
	Prefix *string
	// a syslog level such as "warn", or empty
	Level string
	// "tcp sequence", "tcp options", "ip options", "skuid", "ether" or "all"
	Flags          []string
	Group          *uint16
	Snaplen        *uint32
	QueueThreshold *uint16
}

// LogLevels are the levels by the kernel's numbers.
var LogLevels = []string{"emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit"}

func (p *parser) log() Stmt {
	l := &Log{Pos: p.begin()}
	for p.err == nil {
		switch {
		case p.AcceptIdent("prefix"):
			if p.Tok.Kind == scan.Addr || p.Tok.Kind == scan.Word {
				p.Tok.Kind = scan.String // keywords without quotes
			}
			if p.Tok.IsWord("prefix", "level", "group", "snaplen", "queue-threshold") {
				p.Unexpected("a log prefix in double quotes")
			}
			l.Prefix = new(p.text("a log prefix in double quotes"))
		case p.AcceptIdent("level"):
			if p.Tok.Kind == scan.String {
				p.Tok.Kind = scan.Ident // quotes have no meaning here
			}
			l.Level = p.OneOf(LogLevels...)
		case p.AcceptIdent("group"):
			l.Group = new(uint16(p.ExpectNumber("a number", 16)))
		case p.AcceptIdent("snaplen"):
			l.Snaplen = new(p.uint32("a number"))
		case p.AcceptIdent("queue-threshold"):
			l.QueueThreshold = new(uint16(p.ExpectNumber("a number", 16)))
		case p.AcceptIdent("flags"):
			p.logFlags(l)
		default:
			return l
		}
	}
	return l
}

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
