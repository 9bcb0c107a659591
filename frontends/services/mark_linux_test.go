package services

import (
	"regexp"
	"testing"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// TestMarkIsCleared: no packet leaves with the bit that asks for masquerading, and
// the other bits of its mark stay as they were.
//
// Behaviour: 85, 94.
func TestMarkIsCleared(t *testing.T) {
	c := newCluster(t)
	c.start(t, []*model.Service{newService(1, "2")})
	c.node.Nft(t, `table inet others {
		chain early { type filter hook prerouting priority -150; ct state new meta mark set 0x00a0; }
		chain asked { type filter hook forward priority filter; meta mark & 0x4000 == 0x4000 counter; }
		chain late { type filter hook postrouting priority 300;
			meta mark & 0x4000 == 0x4000 counter
			meta mark 0x00a0 counter
		}
	}`)
	for _, f := range []model.Family{model.IPv4, model.IPv6} {
		c.send(t, flow{"ext", "nodeport 1", "pod2 masq"}, f, "tcp")
	}
	list := c.node.Run(t, "nft", "list", "table", "inet", "others")
	counts := regexp.MustCompile(`counter packets (\d+)`).FindAllStringSubmatch(list, -1)
	if len(counts) != 3 || counts[0][1] == "0" || counts[1][1] != "0" || counts[2][1] == "0" {
		t.Errorf("want packets with the bit in forward, none in postrouting, and some with the other bits:\n%s", list)
	}
}
