package expr

import (
	"encoding/binary"
	"errors"
	"fmt"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
)

// StatefulExprs makes the expressions that each element keeps for itself.
func StatefulExprs(stmts []syntax.Stmt) ([]Expr, error) {
	var out []Expr
	for _, s := range stmts {
		switch s := s.(type) {
		case *syntax.Counter:
			out = append(out, Library{NewCounter(s)})
		case *syntax.Limit:
			l, err := NewLimit(s)
			if err != nil {
				return nil, err
			}
			out = append(out, Library{l})
		case *syntax.Quota:
			q, err := NewQuota(s)
			if err != nil {
				return nil, err
			}
			out = append(out, q)
		case *syntax.ConnLimit:
			out = append(out, NewConnLimit(s))
		default:
			return nil, syntax.ErrorAt(s.Position(), "only counter, limit, quota and ct count are possible in an element")
		}
	}
	return out, nil
}

// Statements that keep a state are kept in nft's words, as [FormatStateful] makes
// them from what the kernel has: "counter packets 3 bytes 180",
// "limit rate 5/second". They are rare, and words are small and can be compared.

// ParseStateful reads statements and returns them in canonical words.
func ParseStateful(text string) ([]string, error) {
	list, err := syntax.ParseStateful(text)
	if err != nil {
		return nil, err
	}
	exprs, err := StatefulExprs(list)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(exprs))
	for i, e := range exprs {
		if out[i], err = ExprWords(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ExprWords returns the statement that an expression was made of in canonical
// words.
func ExprWords(e Expr) (string, error) {
	if words, ok := statefulWords(e); ok {
		return words, nil
	}
	return "", fmt.Errorf("%q keeps no state", e)
}

// EncodeStateful returns the expression of each statement, in canonical words, as
// the kernel takes it: its name and its attributes.
func EncodeStateful(words []string) ([][]byte, error) {
	var out [][]byte
	for _, text := range words {
		list, err := syntax.ParseStateful(text)
		if err != nil {
			return nil, fmt.Errorf("encode statement %q: %w", text, err)
		}
		exprs, err := StatefulExprs(list)
		if err != nil {
			return nil, fmt.Errorf("encode statement %q: %w", text, err)
		}
		for _, e := range exprs {
			b, err := Append(nil, e, uint8(nft.FamilyInet))
			if err != nil {
				return nil, fmt.Errorf("encode statement %q: %w", text, err)
			}
			out = append(out, b)
		}
	}
	return out, nil
}

// FormatStateful returns an expression that keeps a state, as the kernel dumps it,
// in canonical words.
func FormatStateful(encoded []byte) (string, error) {
	name, data, err := Unmarshal(encoded)
	if err != nil {
		return "", err
	}
	numbers := map[uint16]uint64{}
	err = EachAttr(data, func(typ uint16, v []byte) error {
		switch len(v) {
		case 4:
			numbers[typ] = uint64(binary.BigEndian.Uint32(v))
		case 8:
			numbers[typ] = binary.BigEndian.Uint64(v)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read expression %s: %w", name, err)
	}
	words, ok := statefulWords(statefulOf(name, numbers))
	if !ok {
		return "", fmt.Errorf("expression %s: %w", name, errors.ErrUnsupported)
	}
	return words, nil
}

// statefulOf makes an expression of the numbers among its attributes; nil for one
// that keeps no state.
func statefulOf(name string, n map[uint16]uint64) Expr {
	switch name {
	case "counter":
		return Library{&google.Counter{Bytes: n[unix.NFTA_COUNTER_BYTES], Packets: n[unix.NFTA_COUNTER_PACKETS]}}
	case "limit":
		return Library{&google.Limit{
			Type: google.LimitType(n[unix.NFTA_LIMIT_TYPE]), Rate: n[unix.NFTA_LIMIT_RATE],
			Over: n[unix.NFTA_LIMIT_FLAGS]&unix.NFT_LIMIT_F_INV != 0,
			Unit: google.LimitTime(n[unix.NFTA_LIMIT_UNIT]), Burst: uint32(n[unix.NFTA_LIMIT_BURST]),
		}}
	case "quota":
		return &Quota{
			Bytes: n[unix.NFTA_QUOTA_BYTES], Consumed: n[unix.NFTA_QUOTA_CONSUMED],
			Over: n[unix.NFTA_QUOTA_FLAGS]&QuotaInvert != 0,
		}
	case "connlimit":
		return &ConnLimit{Count: uint32(n[nftaConnLimitCount]), Over: n[nftaConnLimitFlags]&connLimitInvert != 0}
	default:
		return nil
	}
}

// statefulWords returns a statement that keeps a state in canonical words, and false
// for any other expression.
func statefulWords(e Expr) (string, bool) {
	var s syntax.Stmt
	switch e := e.(type) {
	case Library:
		switch e := e.Any.(type) {
		case *google.Counter:
			s = &syntax.Counter{Packets: e.Packets, Bytes: e.Bytes}
		case *google.Limit:
			l, err := LimitOf(e)
			if err != nil {
				return "", false
			}
			s = l
		default:
			return "", false
		}
	case *Quota:
		s = QuotaOf(e)
	case *ConnLimit:
		s = &syntax.ConnLimit{Count: e.Count, Over: e.Over}
	default:
		return "", false
	}
	return syntax.PrintStmt(s), true
}
