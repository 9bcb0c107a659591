package compile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Statements that keep a state are kept in nft's words, as [FormatStateful] makes
// them from what the kernel has: "counter packets 3 bytes 180",
// "limit rate 5/second". They are rare, and words are small and can be compared.

// parseStateful reads statements and returns them in canonical words.
func parseStateful(text string) ([]string, error) {
	list, err := syntax.ParseStateful(text)
	if err != nil {
		return nil, err
	}
	exprs, err := statefulExprs(list)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(exprs))
	for i, e := range exprs {
		if out[i], err = exprWords(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// exprWords returns the statement that an expression was made of in canonical
// words.
func exprWords(e Expr) (string, error) {
	if words, ok := statefulWords(e); ok {
		return words, nil
	}
	return "", fmt.Errorf("%q keeps no state", e)
}

// declaredStateful reads the statements of a set's declaration or of an element.
func declaredStateful(texts []string) ([]string, error) {
	var out []string
	for _, text := range texts {
		words, err := parseStateful(text)
		if err != nil {
			return nil, fmt.Errorf("statement %q: %w", text, err)
		}
		out = append(out, words...)
	}
	return out, nil
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
		exprs, err := statefulExprs(list)
		if err != nil {
			return nil, fmt.Errorf("encode statement %q: %w", text, err)
		}
		for _, e := range exprs {
			b, err := appendExpr(nil, e, uint8(nft.FamilyInet))
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
	name, data, err := unmarshalNamed(encoded)
	if err != nil {
		return "", err
	}
	numbers := map[uint16]uint64{}
	err = eachAttr(data, func(typ uint16, v []byte) error {
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
		return kernelExpr{&expr.Counter{Bytes: n[unix.NFTA_COUNTER_BYTES], Packets: n[unix.NFTA_COUNTER_PACKETS]}}
	case "limit":
		return kernelExpr{&expr.Limit{
			Type: expr.LimitType(n[unix.NFTA_LIMIT_TYPE]), Rate: n[unix.NFTA_LIMIT_RATE],
			Over: n[unix.NFTA_LIMIT_FLAGS]&unix.NFT_LIMIT_F_INV != 0,
			Unit: expr.LimitTime(n[unix.NFTA_LIMIT_UNIT]), Burst: uint32(n[unix.NFTA_LIMIT_BURST]),
		}}
	case "quota":
		return &Quota{
			Bytes: n[unix.NFTA_QUOTA_BYTES], Consumed: n[unix.NFTA_QUOTA_CONSUMED],
			Over: n[unix.NFTA_QUOTA_FLAGS]&quotaInvert != 0,
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
	case kernelExpr:
		switch e := e.Any.(type) {
		case *expr.Counter:
			s = &syntax.Counter{Packets: e.Packets, Bytes: e.Bytes}
		case *expr.Limit:
			l, err := limitOf(e)
			if err != nil {
				return "", false
			}
			s = l
		default:
			return "", false
		}
	case *Quota:
		s = quotaOf(e)
	case *ConnLimit:
		s = &syntax.ConnLimit{Count: e.Count, Over: e.Over}
	default:
		return "", false
	}
	return syntax.PrintStmt(s), true
}

// expiresWord begins what is left of an element's timeout in Element.State.
const expiresWord = "expires "

// statefulSeparator joins statements in Element.State.
const statefulSeparator = "; "

// NewState returns an Element.State.
func NewState(expires time.Duration, stateful []string) string {
	if expires == 0 {
		return strings.Join(stateful, statefulSeparator)
	}
	s := expiresWord + datatype.FormatDuration(expires)
	if len(stateful) > 0 {
		s += statefulSeparator + strings.Join(stateful, statefulSeparator)
	}
	return s
}

// Expires returns what is left of the element's timeout, 0 for all of it.
func (e *Element) Expires() time.Duration {
	rest, ok := strings.CutPrefix(e.State, expiresWord)
	if !ok {
		return 0
	}
	rest, _, _ = strings.Cut(rest, statefulSeparator)
	d, err := datatype.ParseDuration(rest)
	if err != nil {
		return 0
	}
	return d
}

// Stateful returns the element's statements in nft's words, with their state.
func (e *Element) Stateful() []string {
	s := e.State
	if strings.HasPrefix(s, expiresWord) {
		_, s, _ = strings.Cut(s, statefulSeparator)
	}
	if s == "" {
		return nil
	}
	return strings.Split(s, statefulSeparator)
}
