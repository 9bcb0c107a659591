package syntax

import (
	"testing"

	"github.com/weft-proxy/weft/nft/nfttest"
)

// TestFilesAsNft offers the files that ParseFile takes, and what FormatFile
// makes of them, to nft.
func TestFilesAsNft(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	for _, c := range fileCases(t) {
		text, _ := c.section("file.nft")
		tables, err := ParseFile("file.nft", text)
		if err != nil {
			continue
		}
		for what, file := range map[string]string{"the file": text, "the printed file": FormatFile(tables)} {
			if _, err := ns.Output(file, "nft", "-c", "-f", "-"); err != nil {
				t.Errorf("%s: nft refuses %s: %v\n%s", c.name, what, err, file)
			}
		}
	}
}
