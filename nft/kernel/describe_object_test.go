package kernel

import (
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
)

func TestDescribeObjects(t *testing.T) {
	id := testTable()
	quota := &object.Object{Kind: nft.ObjectQuota, Name: "q", Text: "over 1 mbytes", Comment: "daily"}
	for _, tt := range []struct {
		op   Op
		want string
	}{
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
