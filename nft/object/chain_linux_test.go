package object

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestChainsAsNft offers every combination of family, hook, type and priority
// to nft and to CompileChain: both must take the same ones, and the kernel must
// see the same numbers.
func TestChainsAsNft(t *testing.T) {
	ns := nfttest.New(t)
	for _, family := range []nft.Family{nft.FamilyIP, nft.FamilyIP6, nft.FamilyInet, nft.FamilyBridge, nft.FamilyARP, nft.FamilyNetdev} {
		// One file of all chains that we take, which nft must take as a whole.
		var file strings.Builder
		want := map[string]*Chain{}
		refused := 0
		for _, hook := range []string{"prerouting", "input", "forward", "output", "postrouting", "ingress", "egress"} {
			for _, typ := range []string{"filter", "nat", "route"} {
				for _, prio := range []string{"raw", "mangle", "dstnat", "filter", "security", "srcnat", "out", "-199", "-200", "filter + 7", "filter - 7"} {
					c := nft.Chain{Name: fmt.Sprintf("c%d", len(want)), Type: typ, Hook: hook, Priority: prio, Policy: "accept"}
					device := ""
					if hook == "ingress" || hook == "egress" {
						c.Device, device = "lo", "device lo "
					}
					text := fmt.Sprintf("chain %s { type %s hook %s %spriority %s; policy accept; }\n", c.Name, typ, hook, device, prio)
					compiled, err := CompileChain(family, &c)
					if err == nil {
						if prio == "dstnat" && hook == "output" || prio == "srcnat" && hook == "input" {
							// nft has these names there since 1.0.9.
							text = strings.Replace(text, "priority "+prio, fmt.Sprintf("priority %d", compiled.Base.Priority), 1)
						}
						want[c.Name] = compiled
						file.WriteString(text)
						continue
					}
					if refused++; refused%7 == 0 { // a sample: each is a run of nft
						in := fmt.Sprintf("table %s t { %s }\n", family, text)
						if _, nftErr := ns.Output(in, "nft", "-c", "-f", "-"); nftErr == nil {
							t.Errorf("%s: %s is refused (%v), but nft takes it", family, strings.TrimSpace(text), err)
						}
					}
				}
			}
		}
		ns.Nft(t, fmt.Sprintf("table %s t {\n%s}\n", family, file.String()))
		got := dumpBases(t, ns, family)
		for name, c := range want {
			if got[name] != *c.Base {
				t.Errorf("%s %s: the kernel has %+v, we %+v", family, name, got[name], *c.Base)
			}
		}
		ns.Nft(t, fmt.Sprintf("delete table %s t\n", family))
	}
}

// dumpBases returns the base chains of a family as the kernel describes them.
func dumpBases(t *testing.T, ns *nfttest.NS, family nft.Family) map[string]Base {
	t.Helper()
	out := map[string]Base{}
	for _, reply := range ns.Dump(t, uint8(family), unix.NFT_MSG_GETCHAIN, nil) {
		var b Base
		var name string
		policy := uint32(1)
		nfttest.NoError(t, attr.Fields{
			attr.Always(unix.NFTA_CHAIN_NAME, &name), attr.Always(unix.NFTA_CHAIN_TYPE, &b.Type), attr.Always(unix.NFTA_CHAIN_POLICY, &policy),
			attr.Always(unix.NFTA_CHAIN_HOOK, attr.Fields{
				attr.Always(unix.NFTA_HOOK_HOOKNUM, &b.Hook), attr.Always(unix.NFTA_HOOK_PRIORITY, &b.Priority), attr.Always(unix.NFTA_HOOK_DEV, &b.Device),
			}),
		}.Read(reply))
		b.Drop = policy == 0
		out[name] = b
	}
	return out
}
