package compile

import (
	"fmt"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Rule is a compiled rule: the expressions that the kernel runs, the
// anonymous sets that they use, and what the rule refers to.
//
// A Rule is immutable and independent of its position in a
// chain, so it can be shared between goroutines and committed any number of
// times.
type Rule struct {
	Family nft.Family
	// Text is the rule in canonical form, without its comment.
	Text    string
	Comment string
	// Exprs are the expressions in kernel order. A Lookup or Dynset on the
	// rule's anonymous set number i (from 0) has SetID i+1 and a name such as "__set%d",
	// in which the kernel replaces %d. One on a named set has SetID 0.
	Exprs []expr.Expr
	// Anonymous are the rule's anonymous sets and maps, in SetID order.
	Anonymous []set.Anonymous
	// Chains are the targets of jump and goto, in the rule itself and in its
	// anonymous verdict maps, sorted, without repeats.
	Chains []string
	// Sets are the names of the named sets and maps that the rule uses,
	// sorted, without repeats.
	Sets []string
	// Objects are the named objects that the rule refers to, Flowtables the
	// flowtables; both sorted, without repeats.
	Objects    []object.Ref
	Flowtables []string
	// Writes are the entries that packets make in maps when they run the rule, without
	// repeats.
	Writes []Write
	// Effects are what the rule can do.
	Effects Effects
	// Fingerprint identifies the rule's content (family, expressions,
	// anonymous sets, comment) without its owner: equal fingerprints mean that the kernel's rule
	// can stay as it is, with its handle and counters. It is stored in the
	// rule's userdata (see UserData) and so must stay the same across
	// versions of weft as long as the compiled bytes do.
	Fingerprint userdata.Fingerprint

	// encoded is what Encode copies.
	encoded expr.Encoded
}

// Encode returns the payload of NFTA_RULE_EXPRESSIONS. The rule's anonymous
// set number i, counted from 1, gets the transaction number base+i. The
// expressions were marshalled when the rule was compiled, so this is a copy. It returns an
// error only for a Rule that CompileRule did not return.
func (r *Rule) Encode(base uint32) ([]byte, error) {
	if r.encoded.Bytes == nil && len(r.Exprs) > 0 {
		// A Rule that was put together by hand.
		encoded, err := expr.Encode(r.Exprs)
		if err != nil {
			return nil, err
		}
		return encoded.At(base), nil
	}
	return r.encoded.At(base), nil
}

// UserData returns the rule's userdata: its comment as nft stores it, then the rule's
// fingerprint and its owner, which nft skips. [userdata.ParseRule] reads it. An owner of
// more than [userdata.MaxOwner] bytes is an error.
func (r *Rule) UserData(owner string) ([]byte, error) {
	if len(owner) > userdata.MaxOwner {
		return nil, fmt.Errorf("encode rule userdata: owner %.40q... has %d bytes: want at most %d", owner, len(owner), userdata.MaxOwner)
	}
	b := make([]byte, 0, len(r.Comment)+len(owner)+len(r.Fingerprint)+7)
	b, err := userdata.AppendComment(b, r.Comment)
	if err != nil {
		return nil, fmt.Errorf("encode rule userdata: %w", err)
	}
	b = append(b, userdata.UdataFingerprint, byte(len(r.Fingerprint)))
	b = append(b, r.Fingerprint[:]...)
	b = append(b, userdata.UdataOwner, byte(len(owner)))
	return append(b, owner...), nil
}
