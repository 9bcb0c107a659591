package render

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// unreadable are rules that nft 1.0.6 prints but aborts on when it reads them: data
// that begins with an IPv6 address, under a key that is one. That weft's own commit of
// them is listed is shown by the tests that send packets.
var unreadable = regexp.MustCompile(`(?m)^.*update @\S+ \{ ip6 saddr .*\n`)

// TestNftTakesIt loads every golden ruleset with the real nft and lists it.
func TestNftTakesIt(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	files, err := filepath.Glob("testdata/*.nft")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must(t, err)
			ns := nfttest.New(t)
			ns.Nft(t, unreadable.ReplaceAllString(string(text), ""))
			list := ns.ListRuleset(t)
			for _, d := range declarations {
				if !strings.Contains(list, "typeof "+d.typeof) {
					t.Errorf("listed without the types of %s:\n%s", d.name, list)
				}
			}
			// What was listed can be loaded again.
			nfttest.New(t).Nft(t, list)
		})
	}
}
