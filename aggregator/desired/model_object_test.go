package desired_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func itemRef(id nft.TableID, item merge.ObjectID) string {
	return fmt.Sprintf("%s %s", id, describeObject(item))
}

func (t *mergedTable) addObjects(ft *modelTable) error {
	t.dormant = t.dormant || ft.dormant
	for id, d := range ft.objects {
		if have, ok := t.objects[id]; ok && !have.Equal(d) {
			return fmt.Errorf("%s contradicts", describeObject(id))
		}
		t.objects[id] = d
	}
	return nil
}

var drawItem = rapid.SampledFrom([]string{"counter n0", "counter n1", "limit l0", "quota q0", "flowtable f0"})

// drawItems declares objects, some of them in another way or with another state.
func drawItems(t *rapid.T, tu *desired.TableUpdate) {
	for _, ref := range rapid.SliceOfNDistinct(drawItem, 0, 3, rapid.ID[string]).Draw(t, "objects") {
		odd := rapid.IntRange(0, 5).Draw(t, "odd object") == 0
		pick := func(usual, other string) string {
			if odd {
				return other
			}
			return usual
		}
		switch named(ref).Kind {
		case nft.ObjectCounter:
			tu.PutObjects = append(tu.PutObjects, declared(ref, pick("", "packets 5 bytes 7")))
		case nft.ObjectLimit:
			tu.PutObjects = append(tu.PutObjects, declared(ref, pick("rate 1/second", "rate 2/second")))
		case nft.ObjectQuota:
			tu.PutObjects = append(tu.PutObjects, declared(ref, pick("over 1 mbytes used 0 bytes", "over 1 mbytes used 9 bytes")))
		default:
			tu.PutFlowtables = append(tu.PutFlowtables, flowtable(named(ref).Name, "eth0", pick("eth1", "eth2")))
		}
	}
}

// ruleObjects are the objects and flowtables that a rule refers to.
func ruleObjects(r *compile.Rule) []merge.ObjectID {
	ids := slices.Clone(r.Objects)
	for _, name := range r.Flowtables {
		ids = append(ids, merge.ObjectID{Kind: merge.KindFlowtable, Name: name})
	}
	return ids
}

// verdictChain returns the chain that a verdict map's data leads to, or "".
func verdictChain(data string) string {
	if len(data) <= 4 {
		return ""
	}
	return data[4:]
}

// leadsToObject returns the object that an element of an object map leads to.
func leadsToObject(d *nftset.Set, data string) merge.ObjectID {
	if d.Object == "" {
		return merge.ObjectID{}
	}
	return merge.ObjectID{Kind: d.Object, Name: data}
}
