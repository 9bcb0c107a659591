package ruleset

import (
	"sort"
	"strings"

	"github.com/weft-proxy/weft/nft/syntax"
)

// source is the text of a file after its variables were replaced, and maps its places to
// the original text.
type source struct {
	// name is the name of the file.
	name string
	// text is the expanded text, original the text of the file.
	text, original string
	// pieces are the origins of the parts of text, in order. There are none if text is the
	// original.
	pieces pieces
	lines  []int
}

// piece is a part of the text: it begins at offset at of text, and at offset from of the
// original. The origin of a variable's value is the place of its use.
type piece struct {
	at, from int
	// file is the number of the file in a bundle.
	file     int
	variable bool
}

// pieces are the origins of the parts of a text, in order.
type pieces []piece

// at returns the piece that contains an offset of the text.
func (p pieces) at(offset int) piece {
	i := sort.Search(len(p), func(i int) bool { return p[i].at > offset })
	if i == 0 {
		return piece{}
	}
	return p[i-1]
}

// splice is a text that is put together from parts of others.
type splice struct {
	strings.Builder
	pieces
}

// add appends text, whose origin is p.
func (s *splice) add(text string, p piece) {
	p.at = s.Len()
	s.pieces = append(s.pieces, p)
	s.WriteString(text)
}

// errorAt returns an error at an offset of the expanded text.
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

// offsetOf returns the offset in text of a place in the part that begins at base.
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

// fromVariable reports whether the expanded text at an offset comes from a variable.
func (s *source) fromVariable(offset int) bool { return s.pieces.at(offset).variable }
