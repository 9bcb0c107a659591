package expr

import (
	"encoding/binary"
	"errors"
	"fmt"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
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
		return nil, fmt.Errorf("expression %s keeps no state: %w", e, errors.ErrUnsupported)
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

// EncodeStateful returns the expression of each statement, in canonical words, as
// the kernel expects it: its name and its attributes.
func EncodeStateful(words []string) ([][]byte, error) {
	var out [][]byte
	for _, text := range words {
		list, err := syntax.ParseStateful(text)
		for i := 0; err == nil && i < len(list); i++ {
			var e Library
			if e, err = NewStateful(list[i]); err == nil {
				var b []byte
				b, err = Marshal(uint8(nft.FamilyInet), e)
				out = append(out, b)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("encode statement %q: %w", text, err)
		}
	}
	return out, nil
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
// a named object of the same name. Data are its attributes. The library's
// Unmarshal is not used because it panics on a connlimit that is truncated.
func DecodeStateful(name string, data []byte) (syntax.Stmt, error) {
	n := map[uint16]uint64{}
	r := attr.NewReader(data)
	for r.Next() {
		switch v := r.Bytes(); len(v) {
		case 4:
			n[r.Type()] = uint64(binary.BigEndian.Uint32(v))
		case 8:
			n[r.Type()] = binary.BigEndian.Uint64(v)
		}
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	switch name {
	case "counter":
		return &syntax.Counter{Packets: n[unix.NFTA_COUNTER_PACKETS], Bytes: n[unix.NFTA_COUNTER_BYTES]}, nil
	case "limit":
		return limitStmt(&google.Limit{
			Type: google.LimitType(n[unix.NFTA_LIMIT_TYPE]), Rate: n[unix.NFTA_LIMIT_RATE],
			Over: n[unix.NFTA_LIMIT_FLAGS]&unix.NFT_LIMIT_F_INV != 0,
			Unit: google.LimitTime(n[unix.NFTA_LIMIT_UNIT]), Burst: uint32(n[unix.NFTA_LIMIT_BURST]),
		})
	case "quota":
		return quotaStmt(&google.Quota{
			Bytes: n[unix.NFTA_QUOTA_BYTES], Consumed: n[unix.NFTA_QUOTA_CONSUMED],
			Over: n[unix.NFTA_QUOTA_FLAGS]&unix.NFT_QUOTA_F_INV != 0,
		}), nil
	case "connlimit":
		return &syntax.ConnLimit{Count: uint32(n[google.NFTA_CONNLIMIT_COUNT]), Over: n[google.NFTA_CONNLIMIT_FLAGS]&google.NFT_CONNLIMIT_F_INV != 0}, nil
	default:
		return nil, fmt.Errorf("expression %s keeps no state: %w", name, errors.ErrUnsupported)
	}
}
