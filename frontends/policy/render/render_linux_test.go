package render

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestNftReadsTheRuleset loads a ruleset with every construct, and what nft lists of it.
func TestNftReadsTheRuleset(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	f := newFixture(t, func(c *Config) { c.DropLog, c.Start = 5, StartDeny })
	everyConstruct(f)
	f.finish()
	f.compare()
	ns := nfttest.New(t)
	ns.Nft(t, f.rules.String())
	listed := ns.ListRuleset(t)
	ns.Nft(t, "flush ruleset\n"+listed)
	if again := ns.ListRuleset(t); again != listed {
		t.Errorf("listed:\n%s\nlisted again:\n%s", listed, again)
	}
}

// everyConstruct has rules of each kind.
func everyConstruct(f *fixture) {
	api := f.set("shop: app=api", "10.244.1.7", "10.244.9.9", "fd00:10:244:1::7")
	web := f.set("shop: app=web", "10.244.1.8")
	named := f.set("port http", "10.244.1.5 tcp 8080", "10.244.1.6 sctp 9090", "fd00:10:244:1::5 udp 53")
	f.policy("shop/db", []model.Rule{
		{Pods: []model.SetID{api}, Ports: ports("tcp 5432", "tcp 6000-6100", "udp 53", "sctp 7")},
		{Pods: []model.SetID{api, web}, Blocks: blocks("10.0.0.0/16", "10.2.0.0/15", "fd00::/8"), Ports: ports("tcp 1", "tcp 2"), NamedPorts: []model.SetID{named}},
		{Any: true, Ports: ports("udp", "sctp")},
		{Blocks: blocks("192.0.2.0/24"), AllPorts: true},
		{Blocks: blocks("0.0.0.0/0"), Ports: ports("tcp 9")},
	}, nil)
	f.policy("shop/out", nil, []model.Rule{{Pods: []model.SetID{api}, AllPorts: true}, {Any: true, Ports: ports("udp 53", "tcp 53")}})
	f.policy("admin/first", []model.Rule{
		{Name: `ingress[0] "a $b\"`, Action: model.Pass, Pods: []model.SetID{web}, Ports: ports("tcp 80", "udp 80")},
		{Name: "ingress[1]", Action: model.Deny, Any: true, Ports: ports("tcp 25")},
	}, []model.Rule{{Action: model.Accept, Any: true, Ports: ports("udp 53")}})
	f.policy("baseline/last", []model.Rule{{Action: model.Deny, Any: true, AllPorts: true}}, nil)
	f.pod("shop/db-0", "10.244.1.5 fd00:10:244:1::5", []string{"admin/first", "shop/db"}, []string{"shop/out"})
	f.pod("shop/db-1", "10.244.1.6 fd00:10:244:1::6", []string{"admin/first", "shop/db", "shop/empty"}, nil)
	f.pod("other/x", "10.244.1.9", []string{"admin/gone", "baseline/last"}, []string{"admin/first"})
	f.pod("other/free", "10.244.1.10", nil, nil)
	long := strings.Repeat("n", 63) + "/" + strings.Repeat("name.", 50)
	f.policy(long, []model.Rule{{Pods: []model.SetID{f.set(strings.Repeat("label=value,", 40), "10.244.1.1")}, Ports: ports("tcp 80")}}, nil)
	f.pod(strings.Repeat("n", 63)+"/"+strings.Repeat("pod-", 60), "10.244.1.11", []string{long, long + "2"}, []string{long})
	f.node = &model.Node{PodCIDRs: prefixes("10.244.1.0/24", "fd00:10:244:1::/64")}
	f.narrowed = addresses("10.244.1.5", "fd00:10:244:1::5")
}
