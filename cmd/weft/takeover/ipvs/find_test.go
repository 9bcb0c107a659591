package ipvs

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// procFiles are as the kernel prints them (net/netfilter/ipvs/ip_vs_ctl.c).
var procFiles = map[string]string{
	"ip_vs": `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A60000A:0050 rr persistent 10800 FFFFFFFF
  -> 0AF40102:1F90      Masq    1      2          0         
UDP  0A60000A:0035 rr  
  -> 0AF40103:0035      Masq    1      0          3         
TCP  C0000202:7530 lc  
SCTP  [fd00:0010:0096:0000:0000:0000:0000:000a]:0050 rr 
TCP  C0000264:0050 wrr  
  -> C0000303:0050      Route   100    0          0         
TCP  C0000265:0051 sh  
FWM  00000001 rr 
TCP  broken
`,
}

func writeProc(t *testing.T, files map[string]string) (proc string) {
	t.Helper()
	proc = t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "self/net"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(proc, "self/net", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

var (
	webAddr   = netip.MustParseAddr("10.96.0.10")
	sixAddr   = netip.MustParseAddr("fd00:10:96::a")
	foundAddr = netip.MustParseAddr("198.51.100.7")
	kubeSets  = map[string][]end{
		"KUBE-CLUSTER-IP": {{protocol: unix.IPPROTO_TCP, addr: webAddr, port: 80}}, "KUBE-IPVS-IPS": {{addr: webAddr}},
		"KUBE-NODE-PORT-TCP": {{protocol: unix.IPPROTO_TCP, port: 30000}},
	}
)

// TestFind tells kube-proxy's virtual servers and addresses from others.
func TestFind(t *testing.T) {
	proc := writeProc(t, procFiles)
	servers, err := readServers(proc)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what                  string
		addrs                 []netip.Addr
		sets                  map[string][]end
		ours, others, removed string
	}{
		{
			what: "with sets", addrs: []netip.Addr{webAddr, sixAddr, foundAddr}, sets: kubeSets,
			ours:    "TCP 10.96.0.10:80, UDP 10.96.0.10:53, TCP 192.0.2.2:30000, SCTP [fd00:10:96::a]:80",
			others:  "virtual server TCP 192.0.2.100:80, virtual server TCP 192.0.2.101:81, virtual server of firewall mark 00000001, address 198.51.100.7 of device kube-ipvs0",
			removed: "10.96.0.10 fd00:10:96::a",
		},
		{
			what: "without sets", addrs: []netip.Addr{webAddr, foundAddr},
			ours:    "TCP 10.96.0.10:80, UDP 10.96.0.10:53",
			others:  "virtual server TCP 192.0.2.2:30000, virtual server SCTP [fd00:10:96::a]:80, virtual server TCP 192.0.2.100:80, virtual server TCP 192.0.2.101:81, virtual server of firewall mark 00000001",
			removed: "10.96.0.10 198.51.100.7",
		},
	} {
		l := decide(servers, test.addrs, test.sets)
		var ours, removed []string
		for _, s := range l.Servers {
			ours = append(ours, s.Name)
		}
		for _, a := range l.Addresses {
			removed = append(removed, a.String())
		}
		if got := strings.Join(ours, ", "); got != test.ours {
			t.Errorf("%s: kube-proxy's are %s, want %s", test.what, got, test.ours)
		}
		if got := strings.Join(l.Others, ", "); got != test.others {
			t.Errorf("%s: others are %s, want %s", test.what, got, test.others)
		}
		if got := strings.Join(removed, " "); got != test.removed {
			t.Errorf("%s: addresses %s, want %s", test.what, got, test.removed)
		}
	}
	if servers, err := readServers(writeProc(t, nil)); err != nil || len(servers) > 0 {
		t.Errorf("without IPVS: %v, %v", servers, err)
	}
}

// TestSetNames has IPv6 names cut as kube-proxy cuts them.
func TestSetNames(t *testing.T) {
	names := kubeProxySets()
	for _, name := range []string{"KUBE-CLUSTER-IP", "KUBE-6-CLUSTER-IP", "KUBE-6-LOAD-BALANCER-SOURCE-CID"} {
		if _, ok := names[name]; !ok {
			t.Errorf("%s is not kube-proxy's", name)
		}
	}
	if _, ok := names["KUBE-SRC-ABCDEF"]; ok || len(names) != 2*len(sets) {
		t.Errorf("%d names, and a set of another program among them: %t", len(names), ok)
	}
}
