package get

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// everything is a fragment with something of each kind that this kernel has.
func everything() *weftv1.Fragment {
	return &weftv1.Fragment{Name: "all", Tables: []*weftv1.Table{{
		Family: "ip", Name: "demo", Comment: "of all kinds", Flags: []string{"dormant"},
		Objects: []*weftv1.Object{
			{Kind: "counter", Name: "hits", Text: "packets 1 bytes 2", Comment: "who came"}, {Kind: "counter", Name: "none"},
			{Kind: "quota", Name: "most", Text: "over 25 mbytes used 1 kbytes"}, {Kind: "limit", Name: "slow", Text: "rate 10/second burst 7 packets"},
			{Kind: "ct helper", Name: "ftp", Text: `type "ftp" protocol tcp; l3proto ip`},
			{Kind: "ct timeout", Name: "short", Text: "protocol tcp; l3proto ip; policy = { established : 120 }"},
			{Kind: "synproxy", Name: "proxy", Text: "mss 1460; wscale 7; timestamp sack-perm"},
		},
		Sets: []*weftv1.Set{{Name: "seen", Type: "ipv4_addr", Flags: []string{"timeout"}, Stateful: []string{"counter"}, Elements: []*weftv1.Element{
			{Key: "192.0.2.1", Timeout: durationpb.New(time.Minute), Comment: "one", State: &weftv1.ElementState{Expires: durationpb.New(30 * time.Second), Stateful: []string{"counter packets 3 bytes 180"}}},
		}}},
		Maps: []*weftv1.Set{{Name: "count", Type: "inet_service : counter", Elements: []*weftv1.Element{{Key: "80", Value: "hits"}}}},
		Chains: []*weftv1.Chain{{Name: "in", Type: "filter", Hook: "input", Priority: "filter", Rules: []*weftv1.Rule{
			{Text: "counter name tcp dport map @count"}, {Text: `quota name "most" drop`, Comment: "too much"}, {Text: `limit name "slow" accept`},
			{Text: `tcp dport 21 ct helper set "ftp"`}, {Text: `ct timeout set "short"`}, {Text: "ip saddr @seen drop"},
		}}},
	}}}
}

// TestFormattedFragment has the real nft read what "weft get NAME -o nft" prints.
func TestFormattedFragment(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	text, err := FormatFragment(everything())
	must(t, err)
	file := filepath.Join(t.TempDir(), "all.nft")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	ns := nfttest.New(t)
	ns.Run(t, "nft", "-c", "-f", file)
	ns.Run(t, "nft", "-f", file)
	for _, object := range []string{"counter ip demo hits", "quota ip demo most", "limit ip demo slow", "ct helper ip demo ftp", "ct timeout ip demo short", "synproxy ip demo proxy"} {
		ns.Run(t, "sh", "-c", "nft list "+object)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
