package ruleset

import (
	"sort"
	"strings"

	"github.com/weft-proxy/weft/nft/syntax"
)

// source maps places in the expanded text of a file to the original.
type source struct {
	name           string
	text, original string
	// origins of text, in order; empty if text is the original
	pieces pieces
	lines  []int
}

// piece starts at offset at of text and from of the original. A variable's value originates at its
// use.
type piece struct {
	at, from int
	// of the file in a bundle
	file     int
	variable bool
}

type pieces []piece

func (p pieces) at(offset int) piece {
	i := sort.Search(len(p), func(i int) bool { return p[i].at > offset })
	if i == 0 {
		return piece{}
	}
	return p[i-1]
}

type splice struct {
	strings.Builder
	pieces
}

func (s *splice) add(text string, p piece) {
	p.at = s.Len()
	s.pieces = append(s.pieces, p)
	s.WriteString(text)
}

func (s *source) errorAt(offset int, msg string) *syntax.Error {
	if p := s.pieces.at(offset); p.variable {
		offset = p.from
	} else {
		offset += p.from - p.at
	}
	if s.lines == nil {
		s.lines = []int{0}
		for i := range len(s.original) {
			if s.original[i] == '\n' {
				s.lines = append(s.lines, i+1)
			}
		}
	}
	offset = min(offset, len(s.original))
	line := sort.SearchInts(s.lines, offset+1) - 1
	end := len(s.original)
	if line+1 < len(s.lines) {
		end = s.lines[line+1] - 1
	}
	return &syntax.Error{
		Pos:  syntax.Pos{Line: line + 1, Column: offset - s.lines[line] + 1},
		Msg:  msg,
		Line: strings.TrimSuffix(s.original[s.lines[line]:end], "\r"),
	}
}

// The position is in the part at base.
func (s *source) offsetOf(base int, pos syntax.Pos) int {
	at := base
	for line := 1; line < pos.Line; line++ {
		i := strings.IndexByte(s.text[at:], '\n')
		if i < 0 {
			return len(s.text)
		}
		at += i + 1
	}
	return min(at+max(pos.Column-1, 0), len(s.text))
}

func (s *source) fromVariable(offset int) bool { return s.pieces.at(offset).variable }
