package kernel

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

func TestDescribe(t *testing.T) {
	id := testTable()
	services := mapOf(nft.Map{Name: "services", TypeOf: "ip daddr . meta l4proto . th dport : verdict", Comment: "VIPs"})
	blocked := setOf(nft.Set{Name: "blocked", Type: "ipv4_addr", Flags: []string{"interval", "timeout"}, Timeout: time.Hour, GCInterval: time.Minute, Size: 9, Policy: "memory", AutoMerge: true})
	quota := &object.Object{Kind: nft.ObjectQuota, Name: "q", Text: "over 1 mbytes", Comment: "daily"}
	lease := pack(blocked, "10.0.0.0/8")
	lease[0].Timeout, lease[0].Comment = time.Minute, "why"
	for _, tt := range []struct {
		op   Op
		want string
	}{
		{AddTable{Table: id}, "add table ip weft"},
		{AddTable{Table: id, Comment: "c"}, `add table ip weft { comment "c"; }`},
		{DeleteTable{Table: id}, "delete table ip weft"},
		{AddChain{Table: id, Chain: chain("c")}, "add chain ip weft c"},
		{AddChain{Table: id, Chain: &object.Chain{Name: "c", Comment: "x", Base: &object.Base{Type: "nat", Hook: 0, Priority: -100}}},
			`add chain ip weft c { comment "x"; type nat hook prerouting priority -100; policy accept; }`},
		{AddChain{Table: nft.TableID{Family: nft.FamilyNetdev, Name: "n"}, Chain: &object.Chain{Name: "c", Base: &object.Base{Type: "filter", Device: "eth0", Drop: true}}},
			`add chain netdev n c { type filter hook ingress device "eth0" priority 0; policy drop; }`},
		{DeleteChain{Table: id, Name: "c"}, "delete chain ip weft c"},
		{AddRule{Table: id, Chain: "c", Rule: ruleOf("counter accept", "why")}, `insert rule ip weft c counter accept comment "why"`},
		{AddRule{Table: id, Chain: "c", Rule: ruleOf("accept", ""), After: &Handle{N: 7}}, "add rule ip weft c handle 7 accept"},
		{AddRule{Table: id, Chain: "c", Rule: ruleOf("accept", ""), After: &Handle{}}, "add rule ip weft c accept"},
		{DeleteRule{Table: id, Chain: "c", Handle: &Handle{N: 7}}, "delete rule ip weft c handle 7"},
		{AddSet{Table: id, Set: services}, `add map ip weft services { type ipv4_addr . inet_proto . inet_service : verdict; comment "VIPs"; }`},
		{AddSet{Table: id, Set: blocked}, "add set ip weft blocked { type ipv4_addr; flags interval,timeout; timeout 1h; gc-interval 1m; size 9; policy memory; auto-merge; }"},
		{DeleteSet{Table: id, Name: "s"}, "delete set ip weft s"},
		{FlushSet{Table: id, Name: "s"}, "flush set ip weft s"},
		{AddElements{Table: id, Set: services, Elements: pack(services, "10.96.0.1 . tcp . 80 : goto pick-3", "10.96.0.2 . udp . 53 : drop")},
			"add element ip weft services { 10.96.0.1 . tcp . 80 : goto pick-3, 10.96.0.2 . udp . 53 : drop }"},
		{AddElements{Table: id, Set: blocked, Elements: lease}, `add element ip weft blocked { 10.0.0.0/8 timeout 1m comment "why" }`},
		{DeleteElements{Table: id, Set: blocked, Elements: lease}, "delete element ip weft blocked { 10.0.0.0/8 }"},
		{AddElements{Table: id, Set: blocked, Elements: []set.Element{{}}}, "add element ip weft blocked { * }"},
		{AddTable{Table: id, Comment: "c", Dormant: true}, `add table ip weft { comment "c"; flags dormant; }`},
		{AddObject{Table: id, Object: quota}, `add quota ip weft q { comment "daily"; over 1 mbytes; }`},
		{AddObject{Table: id, Object: &object.Object{Kind: nft.ObjectSynProxy, Name: "s"}}, "add synproxy ip weft s"},
		{DeleteObject{Table: id, Ref: quota.Ref()}, "delete quota ip weft q"},
		{AddFlowtable{Table: id, Flowtable: &object.Flowtable{Name: "f", Priority: -5}}, "add flowtable ip weft f { hook ingress priority -5; }"},
		{AddFlowtable{Table: id, Flowtable: &object.Flowtable{Name: "f", Devices: []string{"a", "b"}, Flags: 3}},
			`add flowtable ip weft f { hook ingress priority 0; devices = { "a", "b" }; counter; flags offload; }`},
		{DeleteFlowtable{Table: id, Name: "f"}, "delete flowtable ip weft f"},
		{AddChain{Table: nft.TableID{Family: nft.FamilyNetdev, Name: "n"}, Chain: &object.Chain{
			Name: "c", Base: &object.Base{Type: "filter", Devices: object.NewDevices([]string{"b", "a"}), Offload: true},
		}}, `add chain netdev n c { type filter hook ingress devices = { "a", "b" } priority 0; policy accept; flags offload; }`},
	} {
		if got := Describe(tt.op); got != tt.want {
			t.Errorf("Describe = %s\n      want %s", got, tt.want)
		}
		if got := summarize(tt.op, -1); got != tt.want {
			t.Errorf("String = %s\n    want %s", got, tt.want)
		}
	}
}

func TestStringShowsFewElements(t *testing.T) {
	set, elements := loadEndpoints(1000)
	op := AddElements{Table: testTable(), Set: set, Elements: elements}
	if got := summarize(op, -1); !strings.HasSuffix(got, "10.96.0.0 . tcp . 80 . 3 : 10.1.0.3 . 8080, ... (996 more) }") {
		t.Errorf("String = %s", got)
	}
	if got := Describe(op); strings.Count(got, "8080") != 1000 {
		t.Errorf("Describe has %d elements", strings.Count(got, "8080"))
	}
}

func TestBatchErrorText(t *testing.T) {
	set, elements := loadEndpoints(1000)
	err := error(&BatchError{Index: 3, Element: 7, Op: AddElements{Table: testTable(), Set: set, Elements: elements},
		Errno: syscall.EEXIST, ExtAck: "no room", Errors: []*BatchError{{Index: -1, Element: -1, Errno: syscall.EPERM, Err: ErrPermission}}})
	want := "commit add element ip weft endpoints { 10.96.0.0 . tcp . 80 . 7 : 10.1.0.7 . 8080 }: file exists: no room (and 1 more errors)"
	if err.Error() != want {
		t.Errorf("Error = %s\n   want %s", err, want)
	}
	if got := fmt.Sprintf("%+v", err); got != want+"\ncommit batch: operation not permitted: "+ErrPermission.Error() {
		t.Errorf("%%+v = %s", got)
	}
	if !errors.Is(err, syscall.EEXIST) || errors.Is(err, ErrPermission) {
		t.Error("errors.Is does not match the first error alone")
	}
}

func TestOwnedErrorText(t *testing.T) {
	for _, tt := range []struct {
		err  OwnedError
		want string
	}{
		{OwnedError{Table: testTable(), PortID: 7, PID: 12, Process: "weft"}, "table ip weft is owned by process 12 (weft): stop that process first"},
		{OwnedError{Table: testTable(), PortID: 7}, "table ip weft is owned by another process (netlink port 7): stop that process first"},
		{OwnedError{Table: testTable()}, "table ip weft is owned by another process: stop that process first"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("Error = %s, want %s", got, tt.want)
		}
	}
}
