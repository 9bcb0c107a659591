package cost

import (
	"fmt"
	"math/bits"
	"strings"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// Times of expressions in nanoseconds, as nft_do_chain runs them: fitted to Linux 6.18.44 on an AMD
// EPYC with retpolines. "make attack" compares them with new measurements.
const (
	ruleTime = 3
	// Fast expressions: comparisons for equality, masks of four bytes, loads of up to four bytes.
	// callTime is for others.
	compareTime = 6
	loadTime    = 15
	callTime    = 24
	// jumpTime includes the way back. drawTime is a generated number, or one read with a lock.
	// limitTime includes a lock and the clock.
	jumpTime    = 45
	stateTime   = 33
	drawTime    = 70
	limitTime   = 100
	writeTime   = 150
	routeTime   = 250
	dynamicTime = 30
	natTime     = 1000
	packetTime  = 1000

	// "ct count" for each seen connection: a lookup in conntrack (nf_conncount_add)
	connectionTime = 200
	// nf_conntrack_max of a node with 4 GiB
	manyConnections = 1 << 17
)

// Nanoseconds.
const (
	hashTime, hashStep     = 45, 3
	bitmapTime             = 15
	rbtreeTime, rbtreeStep = 30, 35
	// pipapoKiB is for a KiB of buckets, pipapoMatch for each element with matching first fields
	// (nft_pipapo_avx2_lookup).
	pipapoTime, pipapoField, pipapoKiB, pipapoMatch = 150, 40, 30, 5
)

// Visit is the time of a packet in a rule in nanoseconds, without lookups in named sets.
type Visit struct {
	// Worst is for a packet that meets all conditions, Every for any packet.
	Worst, Every int
	// no packet reaches the next rule
	Ends bool
}

// Packet returns the time of a rule.
func Packet(r *compile.Rule) Visit {
	v := Visit{Worst: ruleTime}
	open := true
	drops := dropsAll(r)
	for _, e := range r.Exprs {
		v.Worst += timeOf(r, expr.Unwrap(e), drops)
		if open {
			v.Every = v.Worst
			open = !decides(expr.Unwrap(e))
			verdict, is := expr.Unwrap(e).(*google.Verdict)
			v.Ends = is && verdict.Kind != google.VerdictContinue && verdict.Kind != google.VerdictJump
		}
	}
	v.Every = max(v.Every, ruleTime)
	return v
}

// Connections of dropped packets do not stay.
func dropsAll(r *compile.Rule) bool {
	if len(r.Exprs) == 0 {
		return false
	}
	switch last := expr.Unwrap(r.Exprs[len(r.Exprs)-1]).(type) {
	case *google.Verdict:
		return last.Kind == google.VerdictDrop
	case *google.Reject:
		return true
	}
	return false
}

func decides(e any) bool {
	switch x := e.(type) {
	case *google.Cmp, *google.Range, *google.Lookup, *google.Limit, *google.Quota, *google.Connlimit, *expr.OSF, *expr.Dynset, *expr.ObjrefMap, *expr.Objref:
		return true
	case *google.Verdict:
		return x.Kind != google.VerdictContinue
	default:
		return false
	}
}

func timeOf(r *compile.Rule, e any, drops bool) int {
	switch x := e.(type) {
	case *google.Cmp:
		if x.Op == google.CmpOpEq || x.Op == google.CmpOpNeq {
			return compareTime
		}
	case *expr.Bitwise:
		if len(x.Mask) == 4 {
			return compareTime
		}
	case *google.Payload:
		if x.Len <= 4 && x.Base != google.PayloadBaseLLHeader {
			return loadTime
		}
	case *google.Meta:
		if x.Key == google.MetaKeySKUID || x.Key == google.MetaKeySKGID || x.Key == google.MetaKeyPRANDOM {
			return drawTime
		}
	case *google.Rt:
		if x.Key == google.RtTCPMSS {
			return routeTime
		}
	case *google.Verdict:
		if x.Kind == google.VerdictJump || x.Kind == google.VerdictGoto {
			return jumpTime
		}
		return compareTime
	case *google.Counter, *google.Quota, *expr.Objref:
		return stateTime
	case *google.Numgen, *expr.Hash:
		return drawTime
	case *google.Limit, *expr.ObjrefMap:
		return limitTime
	case *expr.PayloadWrite:
		return writeTime
	case *expr.Fib, *expr.Socket, *expr.OSF, *expr.Xfrm:
		return routeTime
	case *expr.NAT, *expr.Masq, *google.Redir, *expr.TProxy:
		return natTime
	case *expr.Log, *expr.Queue, *expr.Dup, *expr.Fwd, *google.Reject, *google.SynProxy, *expr.FlowOffload:
		return packetTime
	case *google.Connlimit:
		return connections(x, drops) * connectionTime
	case *expr.Dynset:
		return dynamicTime + statesOf(x, drops)
	case *google.Lookup:
		return anonymousLookup(r, x.SetID)
	}
	return callTime
}

// "ct count" forgets dropped connections.
func connections(x *google.Connlimit, drops bool) int {
	if over := x.Flags&connlimitInverted != 0; !over || !drops {
		return manyConnections
	}
	return int(min(x.Count, manyConnections))
}

// NFT_CONNLIMIT_F_INV, set by "ct count over"
const connlimitInverted = 1

func statesOf(x *expr.Dynset, drops bool) (n int) {
	for _, e := range x.Exprs {
		if count, ok := expr.Unwrap(e).(*google.Connlimit); ok {
			n += connections(count, drops) * connectionTime
		} else {
			n += limitTime
		}
	}
	return n
}

// anonymousLookup returns 0 for a named set.
func anonymousLookup(r *compile.Rule, id uint32) int {
	if id == 0 || int(id) > len(r.Anonymous) {
		return 0
	}
	a := &r.Anonymous[id-1]
	var c Content
	for i := range a.Elements {
		c.Add(a.Set, &a.Elements[i], 1)
	}
	return c.Lookup(a.Set)
}

// Lookup returns the time of a lookup in nanoseconds.
func (c *Content) Lookup(d *set.Set) int {
	n, most := c.states*connectionTime, bits.Len(uint(max(c.Elements, dynamicElements(d))))
	for _, s := range d.Stateful {
		n += max(limitTime, connectionsOf(s)*connectionTime)
	}
	switch backendOf(d) {
	case bitmap:
		return n + bitmapTime
	case rbtree:
		return n + rbtreeTime + rbtreeStep*most
	case pipapo:
		read, matched := 0, c.matches()*len(d.Key.Fields)
		for i, length := range d.Key.Fields {
			read += bucketBytes * groups(int(length), c.rulesOf(i)) * words(c.rulesOf(i))
		}
		return n + pipapoTime + pipapoField*len(d.Key.Fields) + pipapoKiB*read>>10 + pipapoMatch*matched
	default:
		return n + hashTime + hashStep*most
	}
}

func connectionsOf(statement string) int {
	var n int
	switch _, err := fmt.Sscanf(statement, "ct count over %d", &n); {
	case err == nil:
		return min(n, manyConnections)
	case strings.Contains(statement, "ct count"):
		return manyConnections
	default:
		return 0
	}
}
