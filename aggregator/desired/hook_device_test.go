package desired_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	nftobject "github.com/weft-proxy/weft/nft/object"
)

// TestChainMovesToAnotherDevice counts the chains of the device's hook again: the kernel has the chain at the same
// hook number, but of another device.
func TestChainMovesToAnotherDevice(t *testing.T) {
	h := newHarness(t)
	on := func(device string) *desired.Update {
		c := base("in", 0)
		c.Decl.Base = &nftobject.Base{Type: "filter", Hook: unix.NF_NETDEV_INGRESS, Device: device}
		return snapshot(policy, 0, in(nft.TableID{Family: nft.FamilyNetdev, Name: "weft"}, c))
	}
	h.commit(on("eth0"))
	for device, want := range map[string]int{"eth0": 0, "eth1": 1} {
		var e desired.Effect
		if err := h.ApplyWithin(on(device), pathOf(&e), nil); err != nil {
			t.Fatal(err)
		}
		if e.HookChains != want {
			t.Errorf("on %s: %d chains at a hook that is new to them, want %d", device, e.HookChains, want)
		}
		h.Rollback()
	}
}
