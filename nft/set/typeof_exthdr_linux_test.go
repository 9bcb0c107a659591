package set

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestExtensionDeclarationsAsNft compares the sets that nft declares of each
// expression on an extension with ours.
func TestExtensionDeclarationsAsNft(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	fields := append(extensionFields(), "frag id . tcp option maxseg size", "ip option rr ptr : sctp chunk data ppid", "mh type : verdict")
	for _, text := range fields {
		decl := nft.Set{TypeOf: text}
		ours, err := compileEither(nft.FamilyInet, decl)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		ns.Nft(t, declare(nft.FamilyInet, ours.Map, decl))
		if diff := gocmp.Diff(dumpSet(t, ns, nft.FamilyInet), ours.wire()); diff != "" {
			t.Errorf("typeof %s differs (-nft +weft):\n%s", text, diff)
		}
		ns.Nft(t, "delete table inet t")
	}
}
