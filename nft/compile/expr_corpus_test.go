package compile

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
)

// TestAppendMatchesLibrary compares our marshalling of the library's
// expressions with its own, for all expressions of the corpora.
func TestAppendMatchesLibrary(t *testing.T) {
	known, compared := map[string]bool{}, 0
	for _, c := range readCorpora(t) {
		for _, text := range c.rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err != nil {
				continue
			}
			for _, e := range rule.Exprs {
				library := inLibrary(e)
				if library == nil {
					continue
				}
				got, err := expr.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				want, err := google.Marshal(uint8(c.family), library)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s: %s\n got %x\nwant %x", text, expr.Format(e), got, want)
				}
				known[reflect.TypeOf(library).String()] = true
				compared++
			}
		}
	}
	if len(known) < 20 || compared < 100 {
		t.Errorf("compared %d expressions of %d kinds: want 20 kinds", compared, len(known))
	}
}

// inLibrary returns an expression as google/nftables has it, nil if it has none.
func inLibrary(e expr.Expr) google.Any {
	has := func(flags uint32, bit uint32) bool { return flags&bit != 0 }
	switch x := expr.Unwrap(e).(type) {
	case google.Any:
		return x
	case *expr.Objref:
		return &google.Objref{Type: int(x.Type), Name: x.Name}
	case *expr.Fib:
		return &google.Fib{
			Register: x.Register, ResultOIF: x.Result == unix.NFT_FIB_RESULT_OIF, ResultOIFNAME: x.Result == unix.NFT_FIB_RESULT_OIFNAME, ResultADDRTYPE: x.Result == unix.NFT_FIB_RESULT_ADDRTYPE,
			FlagSADDR: has(x.Flags, unix.NFTA_FIB_F_SADDR), FlagDADDR: has(x.Flags, unix.NFTA_FIB_F_DADDR), FlagMARK: has(x.Flags, unix.NFTA_FIB_F_MARK),
			FlagIIF: has(x.Flags, unix.NFTA_FIB_F_IIF), FlagOIF: has(x.Flags, unix.NFTA_FIB_F_OIF), FlagPRESENT: has(x.Flags, unix.NFTA_FIB_F_PRESENT),
		}
	case *expr.NAT:
		return &google.NAT{
			Type: google.NATType(x.Type), Family: x.Family, RegAddrMin: x.AddrMin, RegAddrMax: x.AddrMax, RegProtoMin: x.PortMin, RegProtoMax: x.PortMax,
			Random: has(x.Flags, unix.NF_NAT_RANGE_PROTO_RANDOM), FullyRandom: has(x.Flags, unix.NF_NAT_RANGE_PROTO_RANDOM_FULLY), Persistent: has(x.Flags, unix.NF_NAT_RANGE_PERSISTENT),
			Prefix: has(x.Flags, unix.NF_NAT_RANGE_NETMAP), Specified: has(x.Flags, unix.NF_NAT_RANGE_PROTO_SPECIFIED),
		}
	case *expr.Log:
		l := &google.Log{}
		if x.Prefix != nil {
			l.Key, l.Data = l.Key|1<<unix.NFTA_LOG_PREFIX, []byte(*x.Prefix)
		}
		if x.Level != nil {
			l.Key, l.Level = l.Key|1<<unix.NFTA_LOG_LEVEL, google.LogLevel(*x.Level)
		}
		if x.Flags != nil {
			l.Key, l.Flags = l.Key|1<<unix.NFTA_LOG_FLAGS, google.LogFlags(*x.Flags)
		}
		if x.Group != nil {
			l.Key, l.Group = l.Key|1<<unix.NFTA_LOG_GROUP, *x.Group
		}
		if x.Snaplen != nil {
			l.Key, l.Snaplen = l.Key|1<<unix.NFTA_LOG_SNAPLEN, *x.Snaplen
		}
		if x.QThreshold != nil {
			l.Key, l.QThreshold = l.Key|1<<unix.NFTA_LOG_QTHRESHOLD, *x.QThreshold
		}
		return l
	default:
		return nil
	}
}

// TestDumpKnowsAll fails if an expression that rules compile to has no dump.
func TestDumpKnowsAll(t *testing.T) {
	for _, c := range readCorpora(t) {
		for _, text := range c.rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err != nil {
				continue
			}
			// libnftnl itself has no name for ct id.
			dump := strings.ReplaceAll(rule.Dump(), "ct load unknown =>", "")
			if strings.Contains(dump, "unknown") {
				t.Errorf("%s: %s", text, rule.Dump())
			}
		}
	}
}
