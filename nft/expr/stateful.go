package expr

import (
	"errors"
	"fmt"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/syntax"
)

// NewStateful encodes a counter, limit, quota or ct count. Other statements are a *syntax.Error.
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

// StatefulStmt is the inverse of NewStateful, without a default burst and with the greatest units.
// Errors can wrap errors.ErrUnsupported.
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

// StatefulWords returns canonical texts. Wrong statements are a *syntax.Error.
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

// ParseStateful returns the canonical text of each statement.
func ParseStateful(text string) ([]string, error) {
	list, err := syntax.ParseStateful(text)
	if err != nil {
		return nil, err
	}
	return StatefulWords(list)
}

// EncodeStateful returns NFTA_EXPR_NAME and NFTA_EXPR_DATA of a statement.
func EncodeStateful(text string) ([]byte, error) {
	list, err := syntax.ParseStateful(text)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("encode %q: want one statement, got %d", text, len(list))
	}
	e, err := NewStateful(list[0])
	if err != nil {
		return nil, err
	}
	return Marshal(e)
}

// FormatStateful is the inverse of EncodeStateful, with canonical text.
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

// DecodeStateful decodes a stateful expression or named object: counter, limit, quota or connlimit.
// For others the error wraps errors.ErrUnsupported.
func DecodeStateful(name string, data []byte) (syntax.Stmt, error) {
	e := newExpr(name, data)
	if e == nil {
		return nil, fmt.Errorf("expression %s keeps no state: %w", name, errors.ErrUnsupported)
	}
	if err := Unmarshal(data, e); err != nil {
		return nil, err
	}
	return StatefulStmt(e)
}
