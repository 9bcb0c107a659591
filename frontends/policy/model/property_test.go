package model_test

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/testing/modeltest"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// node is the node of the models.
const node = "node-1"

// outcome is what a reader of Changes knows.
type outcome struct {
	Pods     map[types.UID]*model.Pod
	Policies map[model.PolicyID]*model.Policy
	Sets     map[model.SetID]model.Set
	Members  map[model.SetID]map[model.Member]bool
	Node     model.Node
}

func newOutcome() *outcome {
	return &outcome{
		Pods: make(map[types.UID]*model.Pod), Policies: make(map[model.PolicyID]*model.Policy),
		Sets: make(map[model.SetID]model.Set), Members: make(map[model.SetID]map[model.Member]bool),
	}
}

// apply applies changes, each of which must fit to what is known.
func (o *outcome) apply(t *testing.T, c model.Changes) {
	t.Helper()
	for _, p := range c.Pods {
		uid := cmp.Or(p.Old, p.New).UID
		if o.Pods[uid] != p.Old || reflect.DeepEqual(p.Old, p.New) {
			t.Errorf("change of pod %s from %+v to %+v, and it was %+v", uid, p.Old, p.New, o.Pods[uid])
		}
		put(o.Pods, uid, p.New)
	}
	for _, p := range c.Policies {
		id := cmp.Or(p.Old, p.New).ID
		if !reflect.DeepEqual(o.Policies[id], p.Old) || reflect.DeepEqual(p.Old, p.New) {
			t.Errorf("change of policy %v from %+v to %+v, and it was %+v", id, p.Old, p.New, o.Policies[id])
		}
		put(o.Policies, id, p.New)
	}
	for _, s := range c.Sets {
		id := cmp.Or(s.Old, s.New).ID
		if _, ok := o.Sets[id]; ok != (s.Old != nil) {
			t.Errorf("change of set %s from %v, and it is known: %v", id, s.Old, ok)
		}
		if s.New == nil {
			delete(o.Sets, id)
			delete(o.Members, id)
			continue
		}
		o.Sets[id] = *s.New
		if s.Old == nil {
			o.Members[id] = make(map[model.Member]bool)
		}
		for _, m := range s.Removed {
			if !o.Members[id][m] {
				t.Errorf("set %s loses %v, which it does not have", id, m)
			}
			delete(o.Members[id], m)
		}
		for _, m := range s.Added {
			if o.Members[id][m] {
				t.Errorf("set %s gets %v, which it has", id, m)
			}
			o.Members[id][m] = true
		}
	}
	if c.Node != nil {
		o.Node = *c.Node
	}
}

func put[K comparable, V any](in map[K]*V, k K, v *V) {
	if v == nil {
		delete(in, k)
		return
	}
	in[k] = v
}

// TestIncremental makes random changes, some of which give pods addresses of others, in
// batches of random size. What the changes of a model add up to is what a new model has that
// gets only the final objects, in another order.
//
// Policy behaviour: 43-46.
func TestIncremental(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			g := policytest.New(policytest.Config{Seed: seed, Nodes: 3, Namespaces: 5, Pods: 40, Policies: 12, ClusterPolicies: 4})
			m, got := model.New(model.Config{NodeName: node}), newOutcome()
			objects := make(map[string]policytest.Change)
			set1 := func(c policytest.Change) {
				o := c.New
				if o == nil {
					o = c.Old
				}
				key := fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())
				if c.New == nil {
					delete(objects, key)
				} else {
					objects[key] = c
				}
				modeltest.Apply(m, c)
			}
			for _, c := range g.Cluster.Objects() {
				set1(c)
			}
			compared := 0
			for i := range 400 {
				for range 1 + g.Rand().IntN(3) {
					for _, c := range g.Change() {
						set1(disturb(g, c))
					}
				}
				if g.Rand().IntN(20) == 0 {
					set1(cidrs(g))
				}
				got.apply(t, m.Refresh())
				if m.Dirty() {
					t.Fatal("dirty after Refresh")
				}
				if i%10 != 0 {
					continue
				}
				fresh, want := model.New(model.Config{NodeName: node}), newOutcome()
				keys := slices.Sorted(maps.Keys(objects))
				g.Rand().Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
				for _, k := range keys {
					modeltest.Apply(fresh, objects[k])
				}
				want.apply(t, fresh.Refresh())
				if want.Node.Name == "" {
					want.Node = got.Node // It stays when the object is deleted.
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("change %d:\ngot  %v\nwant %v", i, got, want)
				}
				compared += len(got.Pods) * len(got.Policies) * total(got.Members)
				if s := m.Stats(); s.Members != total(got.Members) || s.Sets != len(got.Sets) || s.LocalPods != len(got.Pods) || s.ActivePolicies != len(got.Policies) {
					t.Fatalf("change %d: %+v", i, s)
				}
			}
			if compared == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

func total(sets map[model.SetID]map[model.Member]bool) (n int) {
	for _, s := range sets {
		n += len(s)
	}
	return n
}

// disturb sometimes gives a pod the address of another one, or of the node.
func disturb(g *policytest.Generator, c policytest.Change) policytest.Change {
	p, ok := c.New.(*corev1.Pod)
	if !ok || p == nil || g.Rand().IntN(3) > 0 {
		return c
	}
	ends := g.Cluster.Ends()
	p = p.DeepCopy()
	p.Status.PodIPs = []corev1.PodIP{{IP: ends[g.Rand().IntN(len(ends))].String()}}
	p.Status.PodIP = p.Status.PodIPs[0].IP
	c.New = p
	return c
}

// cidrs makes some addresses those of Services, or none.
func cidrs(g *policytest.Generator) policytest.Change {
	o := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}}
	if g.Rand().IntN(2) == 0 {
		ends := g.Cluster.Ends()
		p, err := ends[g.Rand().IntN(len(ends))].Prefix(28)
		if err != nil {
			panic(err)
		}
		o.Spec.CIDRs = []string{p.String()}
	}
	return policytest.Change{New: o}
}
