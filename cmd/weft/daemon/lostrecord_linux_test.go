package daemon

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// realKernel is that of a network namespace.
type realKernel struct{ ns *nfttest.NS }

func newRealKernel(t *testing.T) lostKernel { return realKernel{nfttest.New(t)} }

func (k realKernel) open(t *testing.T) (aggregator.Kernel, func()) {
	t.Helper()
	conn, err := kernel.Open(kernel.Config{NetNS: k.ns.FD()})
	if err != nil {
		t.Fatal(err)
	}
	return conn, func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// blocks sorts what nft lists in the order in which it was made.
func (k realKernel) blocks(t *testing.T) string {
	t.Helper()
	var tables, blocks []string
	for line := range strings.Lines(k.ns.Run(t, "nft", "list", "ruleset")) {
		text := strings.TrimLeft(line, "\t")
		name, _, opens := strings.Cut(text, " {\n")
		switch depth := len(line) - len(text); {
		case strings.HasPrefix(line, "table "):
			name, _, _ = strings.Cut(text, " {")
			blocks = []string{name + "\n"}
		case line == "}\n":
			slices.Sort(blocks[1:])
			tables = append(tables, strings.Join(blocks, ""))
		case depth == 1 && opens:
			blocks = append(blocks, "  "+name+"\n")
		case text != "}\n" && text != "\n":
			blocks[len(blocks)-1] += "    " + text
		}
	}
	slices.Sort(tables)
	return strings.Join(tables, "")
}

// TestLostRecordOfTheKernel is TestLostRecord with the real kernel.
func TestLostRecordOfTheKernel(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	testLostRecord(t, newRealKernel)
}
