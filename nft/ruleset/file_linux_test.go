package ruleset

import (
	"regexp"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// otherErrors finds errors of nft that are not the kernel's.
var otherErrors = regexp.MustCompile(`Error: ([^C]|C[^o]|Co[^u])`)

// TestFilesAsNft passes the files that Parse accepts, and the files that Format prints, to
// nft. The kernel may refuse a file that is marked [syntax], because it lacks something,
// such as a device. A file that is marked [newer] needs a newer nft, or nft prints it but
// cannot read it.
func TestFilesAsNft(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	for _, c := range fileCases(t) {
		text, _ := c.section("file.nft")
		tables, err := Parse("file.nft", text)
		if err != nil {
			continue
		}
		for what, file := range map[string]string{"the file": text, "the printed file": Format(tables)} {
			comment := string(c.archive.Comment)
			if what == "the file" && strings.Contains(comment, "[newer]") {
				continue
			}
			_, err := ns.Output(file, "nft", "-c", "-f", "-")
			if err != nil && strings.Contains(comment, "[") && !otherErrors.MatchString(err.Error()) {
				continue
			}
			if err != nil {
				t.Errorf("%s: nft refuses %s: %v\n%s", c.name, what, err, file)
			}
		}
	}
}
