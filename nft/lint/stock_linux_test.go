package lint_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/eval/load"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/lint"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestStockIPTables tests that iptables rulesets of other programs, read from the kernel, have no findings.
func TestStockIPTables(t *testing.T) {
	const restore = "iptables-nft-restore"
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	files, err := filepath.Glob("../eval/testdata/stock/*.iptables")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v: want at least 3", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".iptables"), func(t *testing.T) {
			ns := nfttest.New(t)
			ns.Run(t, restore, file)
			r, err := kernel.OpenReader(kernel.Config{NetNS: ns.FD()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			rules, err := load.Kernel(r)
			if err != nil {
				t.Fatal(err)
			}
			if len(rules.Tables) == 0 {
				t.Fatal("no tables")
			}
			found := lint.Run(rules, lint.Options{})
			for i := range found {
				t.Errorf("%s", found[i].String())
			}
		})
	}
}
