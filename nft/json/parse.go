package json

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Is reports whether a file is JSON, that is, begins with a brace.
func Is(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{")
}

// ParseFile calls [Parse] for JSON, and [ruleset.Parse] otherwise. The error is a
// *ruleset.ErrorList.
func ParseFile(name, text string) ([]nft.Table, error) {
	if Is(text) {
		return Parse(name, text)
	}
	return ruleset.Parse(name, text)
}

// ParsePositions is ParseFile, but with an error it also returns the understood tables. Positions
// of JSON are unknown.
func ParsePositions(name, text string) ([]nft.Table, *ruleset.Positions, error) {
	if !Is(text) {
		return ruleset.ParsePositions(name, text)
	}
	tables, err := parse(name, text)
	return tables, &ruleset.Positions{}, err
}

// Parse parses a JSON document. It adds the flag dynamic, missing in nft's JSON, to sets that rules
// change. The error is a *ruleset.ErrorList.
func Parse(name, text string) ([]nft.Table, error) {
	tables, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	return tables, nil
}

// parse returns the understood tables also with an error.
func parse(name, text string) ([]nft.Table, error) {
	if err := ruleset.CheckLength(name, text); err != nil {
		return nil, err
	}
	var document struct {
		Nftables []json.RawMessage `json:"nftables"`
	}
	if err := decode([]byte(text), &document); err != nil {
		return nil, &ruleset.ErrorList{Name: name, Errors: []*syntax.Error{decodeError(text, err)}}
	}
	r := &reader{byID: map[nft.TableID]*table{}}
	for i, raw := range document.Nftables {
		var v any
		if err := decode(raw, &v); err != nil {
			r.fail(&syntax.Error{Msg: fmt.Sprintf("nftables[%d]: %v", i, err)})
			break
		}
		r.entry(node{v, &path{up: &path{key: "nftables"}, index: i}})
		if len(r.errs) >= ruleset.MaxErrors {
			break
		}
	}
	if len(r.errs) > 0 {
		return r.finish(), &ruleset.ErrorList{Name: name, Errors: r.errs}
	}
	return r.finish(), nil
}

// decode reads exactly one value; numbers stay as written.
func decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("parse JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("parse JSON: unexpected data after the first value")
	}
	return nil
}

// the longest line in an error: nft prints a document on one line
const maxLine = 200

func decodeError(text string, err error) *syntax.Error {
	offset := int64(-1)
	if e := (*json.SyntaxError)(nil); errors.As(err, &e) {
		offset = e.Offset
	}
	if e := (*json.UnmarshalTypeError)(nil); errors.As(err, &e) {
		offset = e.Offset
	}
	if offset < 0 || offset > int64(len(text)) {
		return &syntax.Error{Msg: err.Error()}
	}
	before := text[:max(offset-1, 0)]
	pos := syntax.Pos{Line: 1 + strings.Count(before, "\n"), Column: len(before) - strings.LastIndexByte(before, '\n')}
	line := syntax.SourceLine(text, pos.Line)
	if len(line) > maxLine {
		return &syntax.Error{Msg: fmt.Sprintf("line %d column %d: %s", pos.Line, pos.Column, err)}
	}
	return &syntax.Error{Pos: pos, Msg: err.Error(), Line: line}
}
