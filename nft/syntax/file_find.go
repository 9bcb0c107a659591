package syntax

import "github.com/weft-proxy/weft/nft"

// FileRule is a rule as it stands in a file.
type FileRule struct {
	// Text is the rule as it was written, with variables expanded.
	Text   string
	src    *source
	offset int
}

// Error returns an error about Text as one about the file.
func (r *FileRule) Error(e *Error) *Error {
	return r.src.errorAt(r.src.offsetOf(r.offset, e.Pos), e.Msg)
}

// FindRule finds rule number n (from 0) of a chain in a file that ParseFile
// reads.
func FindRule(text string, table nft.TableID, chain string, n int) (*FileRule, bool) {
	p := newFileParser(text)
	p.wanted = &wantedRule{table: table, chain: chain, n: n}
	p.parse()
	return p.wanted.found, p.wanted.found != nil
}

// wantedRule is what FindRule looks for.
type wantedRule struct {
	table nft.TableID
	chain string
	n     int
	found *FileRule
}

// note is called for each rule that goes to the end of a chain; its text ends
// before the parser's current token. It does nothing for a nil receiver.
func (w *wantedRule) note(p *fileParser, c *nft.Chain, start int) {
	if w == nil || len(c.Rules) != w.n || c.Name != w.chain {
		return
	}
	if t := p.tables[w.table]; t != nil && t.chain(w.chain) == c {
		w.found = &FileRule{Text: p.src.text[start:p.end], src: p.src, offset: start}
	}
}
