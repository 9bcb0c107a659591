package compile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
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

// statefulWords returns a statement that keeps a state in canonical words.
func statefulWords(e Expr) (string, bool) {
	switch e := e.(type) {
	case kernelExpr:
		switch e := e.Any.(type) {
		case *expr.Counter:
			return counterWords(e), true
		case *expr.Limit:
			return limitWords(e)
		}
		return "", false
	case *Quota:
		s := "quota " + over(e.Over) + amount(e.Bytes)
		if e.Consumed != 0 {
			s += " used " + amount(e.Consumed)
		}
		return s, true
	case *ConnLimit:
		return "ct count " + over(e.Over) + strconv.FormatUint(uint64(e.Count), 10), true
	default:
		return "", false
	}
}

// counterWords returns a counter in nft's words.
func counterWords(c *expr.Counter) string {
	if c.Packets == 0 && c.Bytes == 0 {
		return "counter"
	}
	return "counter packets " + strconv.FormatUint(c.Packets, 10) + " bytes " + strconv.FormatUint(c.Bytes, 10)
}

// limitWords returns a limit in nft's words.
func limitWords(l *expr.Limit) (string, bool) {
	per, ok := map[expr.LimitTime]string{
		expr.LimitTimeSecond: "second", expr.LimitTimeMinute: "minute", expr.LimitTimeHour: "hour",
		expr.LimitTimeDay: "day", expr.LimitTimeWeek: "week",
	}[l.Unit]
	switch {
	case !ok:
		return "", false
	case l.Type == expr.LimitTypePktBytes:
		s := "limit rate " + over(l.Over) + amount(l.Rate) + "/" + per
		if l.Burst != 0 {
			s += " burst " + amount(uint64(l.Burst))
		}
		return s, true
	default:
		s := "limit rate " + over(l.Over) + strconv.FormatUint(l.Rate, 10) + "/" + per
		if l.Burst != 0 && l.Burst != defaultBurst {
			s += " burst " + strconv.FormatUint(uint64(l.Burst), 10) + " packets"
		}
		return s, true
	}
}

// defaultBurst is nft's burst of a limit in packets.
const defaultBurst = 5

func over(yes bool) string {
	if yes {
		return "over "
	}
	return ""
}

// amount is amountOf as text.
func amount(n uint64) string {
	n, unit := amountOf(n)
	return strconv.FormatUint(n, 10) + " " + unit
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
