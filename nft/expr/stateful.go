package expr

import (
	"errors"
	"fmt"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// NewStateful makes the expression of a statement that keeps a state: a counter,
// limit, quota or number of connections.
func NewStateful(s syntax.Stmt) (Library, error) {
	var e google.Any
	var err error
	switch s := s.(type) {
	case *syntax.Counter:
		e = &google.Counter{Packets: s.Packets, Bytes: s.Bytes}
	case *syntax.Limit:
		e, err = NewLimit(s)
	case *syntax.Quota:
		e, err = NewQuota(s)
	case *syntax.ConnLimit:
		e = &google.Connlimit{Count: s.Count, Flags: flag(s.Over, google.NFT_CONNLIMIT_F_INV)}
	default:
		return Library{}, syntax.ErrorAt(s.Position(), "only counter, limit, quota and ct count are possible in an element")
	}
	if err != nil {
		return Library{}, err
	}
	return Library{e}, nil
}

// NewStatefuls makes the expressions of statements that keep a state.
func NewStatefuls(stmts []syntax.Stmt) ([]Expr, error) {
	var out []Expr
	for _, s := range stmts {
		e, err := NewStateful(s)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// StatefulStmt is the inverse of NewStateful. Its error wraps
// errors.ErrUnsupported for other expressions.
func StatefulStmt(e Expr) (syntax.Stmt, error) {
	k, _ := e.(Library)
	switch k := k.Any.(type) {
	case *google.Counter:
		return &syntax.Counter{Packets: k.Packets, Bytes: k.Bytes}, nil
	case *google.Limit:
		return limitStmt(k)
	case *google.Quota:
		return quotaStmt(k), nil
	case *google.Connlimit:
		return &syntax.ConnLimit{Count: k.Count, Over: k.Flags&google.NFT_CONNLIMIT_F_INV != 0}, nil
	default:
		return nil, fmt.Errorf("expression %s keeps no state: %w", Format(e), errors.ErrUnsupported)
	}
}

// Statements that keep a state are kept in nft's words: "counter packets 3
// bytes 180", "limit rate 5/second". They are rare, and words are small and can
// be compared. The words are canonical if they are what syntax.PrintStmt prints
// of what StatefulStmt returns.

// StatefulWords returns statements that keep a state in canonical words.
func StatefulWords(list []syntax.Stmt) ([]string, error) {
	out := make([]string, len(list))
	for i, s := range list {
		e, err := NewStateful(s)
		if err != nil {
			return nil, err
		}
		if s, err = StatefulStmt(e); err != nil {
			return nil, err
		}
		out[i] = syntax.PrintStmt(s)
	}
	return out, nil
}

// ParseStateful parses statements that keep a state and returns them in
// canonical words.
func ParseStateful(text string) ([]string, error) {
	list, err := syntax.ParseStateful(text)
	if err != nil {
		return nil, err
	}
	return StatefulWords(list)
}

// EncodeStateful returns the expression of a statement, in canonical words, as the
// kernel expects it: its name and its attributes.
func EncodeStateful(text string) ([]byte, error) {
	list, err := syntax.ParseStateful(text)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("%d statements: want one", len(list))
	}
	if err != nil {
		return nil, fmt.Errorf("encode statement %q: %w", text, err)
	}
	e, err := NewStateful(list[0])
	if err != nil {
		return nil, fmt.Errorf("encode statement %q: %w", text, err)
	}
	return Marshal(uint8(nft.FamilyInet), e)
}

// FormatStateful returns an expression that keeps a state, as the kernel dumps it,
// in canonical words.
func FormatStateful(encoded []byte) (string, error) {
	name, data, err := Split(encoded)
	if err != nil {
		return "", err
	}
	s, err := DecodeStateful(name, data)
	if err != nil {
		return "", err
	}
	return syntax.PrintStmt(s), nil
}

// DecodeStateful returns the statement of an expression that keeps a state, or of
// a named object of the same name. Data are its attributes.
func DecodeStateful(name string, data []byte) (syntax.Stmt, error) {
	for _, e := range [...]google.Any{&google.Counter{}, &google.Limit{}, &google.Quota{}, &google.Connlimit{}} {
		var t table
		if t.stateful(e); t.name != name {
			continue
		}
		if err := Unmarshal(data, Library{e}); err != nil {
			return nil, err
		}
		return StatefulStmt(Library{e})
	}
	return nil, fmt.Errorf("expression %s keeps no state: %w", name, errors.ErrUnsupported)
}
