package eval_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/eval"
	evalload "github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/kernel"
)

var stockPackets = flag.Int("stock.packets", 300, "number of packets that are sent through each ruleset of another program")

// TestStockRulesetsAgree loads rulesets as other programs make them with nft and iptables, sends packets through
// them, and compares what the kernel does with the outcomes for the ruleset that is read back from it.
//
//	go test ./nft/eval -run TestStockRulesetsAgree -v -stock.packets 20000 -timeout 0
func TestStockRulesetsAgree(t *testing.T) {
	// iptables is of the variant that makes nftables' rules.
	const restore = "iptables-nft-restore"
	files, err := filepath.Glob("testdata/stock/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rulesets: %v", err)
	}
	var all tally
	for i, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lab := newLab(t)
			if strings.HasSuffix(file, ".iptables") {
				lab.node.Nft(t, tracing)
				if out, err := lab.node.Output(string(text), restore); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			} else {
				lab.node.Nft(t, tracing+string(text))
			}
			conn, rules := readBack(t, lab)
			var sum tally
			comparePackets(t, lab, conn, rules, string(text), randomPacket, *stockPackets, rand.New(rand.NewPCG(*seed, uint64(i))), &sum)
			t.Logf("%d packets, %d steps: %d forwarded, %d rewritten, %d dropped, %d with several outcomes, %d undecided",
				sum.packets, sum.steps, sum.forwarded, sum.rewritten, sum.dropped, sum.branched, sum.undecided)
			all.packets, all.steps, all.undecided = all.packets+sum.packets, all.steps+sum.steps, all.undecided+sum.undecided
			if sum.forwarded == 0 || sum.rewritten == 0 || sum.dropped == 0 {
				t.Error("the packets do not cover all results")
			}
			if sum.undecided*50 > sum.packets {
				t.Errorf("%d of %d packets are undecided: want at most 2 %%", sum.undecided, sum.packets)
			}
		})
	}
	t.Logf("%d rulesets, %d packets, %d steps, %d (%.2f %%) undecided", len(files), all.packets, all.steps, all.undecided, 100*float64(all.undecided)/float64(all.packets))
}

// readBack returns a function that reads the rules of the node from the kernel, without the elements that a Ruleset
// remembers, and a connection for traces.
func readBack(t *testing.T, lab *lab) (conn *kernel.Conn, rules func() *eval.Ruleset) {
	t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: lab.node.FD()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	reader, err := kernel.OpenReader(kernel.Config{NetNS: lab.node.FD()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	return conn, func() *eval.Ruleset {
		rules, err := evalload.Kernel(reader)
		if err != nil {
			t.Fatal(err)
		}
		return rules
	}
}
