package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
)

// source is the place of a publisher in a configuration.
type source struct {
	file, path string
	// of all fields by path
	lines map[string]int
}

func (s *source) line(field string) int { return s.lines[s.path+"."+field] }

func (s *source) begin() string { return fmt.Sprintf("%s:%d", s.file, s.lines[s.path]) }

// set reports whether a line of the publisher, or of the defaults, decides about a field.
func (s *source) set(field string) bool {
	return s.line(field) != 0 || s.lines["defaults."+field] != 0
}

// Where describes the line of the configuration that decides about a field, such as "allow.shared".
func (s *source) Where(field string) string {
	line := s.line(field)
	switch {
	case line == 0 && s.set(field):
		return fmt.Sprintf("defaults.%s at %s:%d", field, s.file, s.lines["defaults."+field])
	case line == 0 && strings.HasPrefix(field, "limits."):
		return fmt.Sprintf("the default: %s is not set at %s", field, s.begin())
	case line == 0:
		return fmt.Sprintf("no %s at %s", field, s.begin())
	}
	return fmt.Sprintf("%s at %s:%d", field, s.file, line)
}

func (p *Publisher) refuse(limit Limit, field, asked, allowed string) *Refusal {
	return &Refusal{
		Limit: limit, Publisher: p.Name,
		Text: fmt.Sprintf("publisher %s %s: %s (%s)", p.Name, asked, allowed, p.Where(field)),
	}
}

// Table refuses a table.
func (p *Publisher) Table(id nft.TableID) *Refusal {
	asked := "may not use table " + clip(id.String())
	if p.Allow.Families != nil && !slices.Contains(p.Allow.Families, id.Family) {
		return p.refuse(LimitFamily, "allow.families", asked, "allowed families are "+join(p.Allow.Families))
	}
	tables := p.Allow.Tables
	if tables == nil {
		// The name has no special characters of globs.
		tables = []TablePattern{{Name: p.Name}}
	}
	for _, t := range tables {
		if t.matches(id) {
			return nil
		}
	}
	return p.refuse(LimitTable, "allow.tables", asked, "allowed tables are "+join(tables))
}

// Priority refuses a priority of fragments.
func (p *Publisher) Priority(n int32) *Refusal {
	if p.Priorities.Has(n) {
		return nil
	}
	return p.refuse(LimitPriority, "priorities", fmt.Sprintf("may not use priority %d", n), "allowed is "+p.Priorities.String())
}

// Reads refuses to read others' content, such as "table ip filter".
func (p *Publisher) Reads(what string) *Refusal {
	return p.refuse(LimitRead, "read", "may not read "+clip(what), "it belongs to other publishers")
}

// ConntrackEntries refuses to list or delete conntrack entries.
func (p *Publisher) ConntrackEntries() *Refusal {
	return p.refuse(LimitFlows, "flows", "may not list or delete conntrack entries", "that needs flows: true")
}

// Holds refuses a growth of holdings from before to after. An excess may stay.
func (p *Publisher) Holds(limit Limit, before, after int) *Refusal {
	if after <= before || !p.Limits.exceeded(limit, after) {
		return nil
	}
	return p.tooMany(limit, fmt.Sprintf("would hold %d %s, and holds %d", after, limit.things(), before), "")
}

// Brings refuses a single update, before unpacking, with more than the publisher may hold.
func (p *Publisher) Brings(limit Limit, n int) *Refusal {
	if !p.Limits.exceeded(limit, n) {
		return nil
	}
	return p.tooMany(limit, fmt.Sprintf("sends a snapshot with at least %d %s", n, limit.things()), "")
}

// Streams refuses n open Publish streams, including the new one.
func (p *Publisher) Streams(n int) *Refusal {
	if !p.Limits.exceeded(LimitStreams, n) {
		return nil
	}
	return p.tooMany(LimitStreams, fmt.Sprintf("would have %d open streams", n), ": close one first")
}

func (p *Publisher) tooMany(limit Limit, asked, advice string) *Refusal {
	return p.refuse(limit, "limits."+string(limit), asked, fmt.Sprintf("at most %d are allowed%s", p.Limits.Most[limit], advice))
}

func (l *Limits) exceeded(limit Limit, n int) bool {
	most := l.Most[limit]
	return most != 0 && n > most
}

// TooFast refuses an early update. retry, such as "2s", is for the message.
func (p *Publisher) TooFast(retry string) *Refusal {
	return p.refuse(LimitUpdates, "limits.updatesPerSecond", "sends updates too fast",
		fmt.Sprintf("%v a second are allowed, and %d at once: retry in %s", p.Limits.UpdatesPerSecond, p.Limits.Burst, retry))
}

func clip(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("%.80s...", s)
	}
	return s
}
