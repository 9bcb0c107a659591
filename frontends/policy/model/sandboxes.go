package model

import (
	"cmp"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// sandboxes count only for addresses that the local Pod of the same name lacks.
type sandboxes struct {
	byID    map[string]*SandboxObject
	byPod   map[types.NamespacedName][]*SandboxObject // sorted by ID
	counted map[types.NamespacedName][]string         // pods that represent sandboxes
}

func newSandboxes() sandboxes {
	return sandboxes{
		byID: make(map[string]*SandboxObject), byPod: make(map[types.NamespacedName][]*SandboxObject),
		counted: make(map[types.NamespacedName][]string),
	}
}

// SetSandbox stores a sandbox until DeleteSandbox or SetSandboxes.
func (ps *pods) SetSandbox(o *SandboxObject) {
	ps.setSandbox(o)
}

// DeleteSandbox removes the sandbox with an ID.
func (ps *pods) DeleteSandbox(id string) {
	ps.deleteSandbox(id)
}

// SetSandboxes replaces all sandboxes.
func (ps *pods) SetSandboxes(all []*SandboxObject) {
	keep := make(map[string]bool, len(all))
	for _, o := range all {
		keep[o.id] = true
	}
	var gone []string
	for id := range ps.sandboxes.byID {
		if !keep[id] {
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		ps.deleteSandbox(id)
	}
	for _, o := range all {
		ps.setSandbox(o)
	}
}

func (ps *pods) setSandbox(o *SandboxObject) {
	o.pod.node = ps.nodeName
	was := ps.sandboxes.byID[o.id]
	if was != nil && was.pod.equal(&o.pod) {
		return
	}
	ps.reportPod(&o.pod.podFacts, &cmp.Or(was, &SandboxObject{}).pod.podFacts)
	ps.deleteSandbox(o.id)
	if o.pod.absent() {
		return
	}
	if len(ps.sandboxes.byID) >= MaxSandboxes {
		ps.reporter.log.Error("too many sandboxes: the pod is not known before the API reports it",
			"namespace", o.pod.name.Namespace, "name", o.pod.name.Name, "sandboxes", MaxSandboxes)
		return
	}
	name := o.pod.name
	ps.discountSandboxes(name)
	ps.sandboxes.byID[o.id] = o
	ps.sandboxes.byPod[name] = append(ps.sandboxes.byPod[name], o)
	slices.SortFunc(ps.sandboxes.byPod[name], func(a, b *SandboxObject) int { return cmp.Compare(a.id, b.id) })
	ps.countSandboxes(name)
}

func (ps *pods) deleteSandbox(id string) {
	o := ps.sandboxes.byID[id]
	if o == nil {
		return
	}
	name := o.pod.name
	ps.discountSandboxes(name)
	delete(ps.sandboxes.byID, id)
	rest := slices.DeleteFunc(ps.sandboxes.byPod[name], func(p *SandboxObject) bool { return p == o })
	if len(rest) == 0 {
		delete(ps.sandboxes.byPod, name)
		return
	}
	ps.sandboxes.byPod[name] = rest
	ps.countSandboxes(name)
}

// aroundPod calls change to store or remove a Pod. Meanwhile, sandboxes with its name or UID do not
// count.
func (ps *pods) aroundPod(name types.NamespacedName, uid types.UID, change func()) {
	if len(ps.sandboxes.byID) == 0 {
		change()
		return
	}
	names := []types.NamespacedName{name}
	if p := ps.locals[uid]; p != nil && p.sandbox && p.name != name {
		names = append(names, p.name)
	}
	for _, n := range names {
		ps.discountSandboxes(n)
	}
	change()
	for _, n := range names {
		ps.countSandboxes(n)
	}
}

func (ps *pods) discountSandboxes(name types.NamespacedName) {
	for _, key := range ps.sandboxes.counted[name] {
		ps.replace(ps.namespaces[name.Namespace].pods[key], nil)
	}
	delete(ps.sandboxes.counted, name)
}

func (ps *pods) countSandboxes(name types.NamespacedName) {
	var taken []netip.Addr
	if n := ps.namespaces[name.Namespace]; n != nil {
		if p := n.pods[name.Name]; p != nil && p.local {
			taken = slices.Clone(p.podFacts.addresses())
		}
	}
	for _, o := range ps.sandboxes.byPod[name] {
		object := o.pod
		object.addrs = [2]netip.Addr{}
		copy(object.addrs[:], slices.DeleteFunc(slices.Clone(o.pod.addresses()), func(a netip.Addr) bool { return slices.Contains(taken, a) }))
		if object.absent() {
			continue
		}
		taken = append(taken, object.addresses()...)
		// The Pod has the same UID, so its arrival makes no difference.
		if ps.locals[object.uid] != nil {
			object.uid = types.UID("/sandbox/" + o.id)
		}
		p := ps.newPod(&object)
		p.sandbox = true
		ps.replace(nil, p)
		ps.sandboxes.counted[name] = append(ps.sandboxes.counted[name], p.key())
	}
}
