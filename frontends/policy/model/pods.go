package model

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// pods turns events about pods and sandboxes into changes of the cluster and of sets.
type pods struct {
	*cluster
	sets       *sets
	reserved   *reserved
	reporter   *reporter
	sandboxes  sandboxes
	labelLists sharedLists[label]
	portLists  sharedLists[namedPort]
}

func (ps *pods) newPod(o *PodObject) *pod {
	p := &pod{
		podFacts: o.podFacts, namespace: ps.namespace(o.name.Namespace), local: o.node == ps.nodeName,
		labels: ps.labelLists.use(o.labels), ports: ps.portLists.use(o.ports),
	}
	p.ignored = ps.reserved.ignored(&p.podFacts)
	return p
}

// SetPod stores a Pod.
func (ps *pods) SetPod(o *PodObject) {
	n := ps.namespaces[o.name.Namespace]
	var was *pod
	if n != nil {
		was = n.pods[o.name.Name]
	}
	if o.node == ps.nodeName {
		ps.reportPod(&o.podFacts, &cmp.Or(was, &pod{}).podFacts)
	}
	if o.absent() {
		ps.aroundPod(o.name, "", func() { ps.replace(was, nil) })
		return
	}
	if was != nil && was.is(o) {
		return
	}
	ps.aroundPod(o.name, o.uid, func() {
		now := ps.newPod(o)
		if other := ps.locals[o.uid]; now.local && other != nil && other != was {
			// Pods of manifests may share a UID.
			now.uid = types.UID(string(o.uid) + "/" + o.name.String())
		}
		ps.replace(was, now)
	})
}

// DeletePod removes a Pod.
func (ps *pods) DeletePod(name types.NamespacedName) {
	if n := ps.namespaces[name.Namespace]; n != nil && n.pods[name.Name] != nil {
		ps.aroundPod(name, "", func() { ps.replace(n.pods[name.Name], nil) })
	}
}

// Either pod may be nil.
func (ps *pods) replace(was, now *pod) {
	var addresses []netip.Addr
	if was != nil {
		addresses = was.addresses()
	}
	if now != nil {
		for _, a := range now.addresses() {
			if !slices.Contains(addresses, a) {
				addresses = append(slices.Clip(addresses), a)
			}
		}
	}
	for _, a := range addresses {
		ps.sets.note(a, false, nil)
		ps.touchAddress(a)
	}
	ps.cluster.remove(was)
	ps.cluster.add(now)
	for _, a := range addresses {
		ps.sets.note(a, true, nil)
		ps.touchAddress(a)
	}
	ps.reportConflicts(now)
	if was != nil {
		if was.local {
			ps.dropIndex(was.namespace)
		}
		ps.labelLists.release(was.labels)
		ps.portLists.release(was.ports)
		ps.forgetNamespace(was.namespace)
	}
}

func (ps *pods) reclaim() {
	for _, n := range ps.namespaces {
		for _, p := range n.pods {
			if ps.reserved.ignored(&p.podFacts) == p.ignored {
				continue
			}
			now := *p
			now.labels.uses++
			now.ports.uses++
			now.ignored = ps.reserved.ignored(&now.podFacts)
			if now.local {
				ps.reportIgnored(&now.podFacts)
			}
			ps.replace(p, &now)
		}
	}
}

func (ps *pods) reportPod(o, was *podFacts) {
	if was.equal(o) {
		return
	}
	ps.reporter.findings("Pod", o.name, was.bad, o.bad)
	for _, f := range o.bad {
		if !slices.Contains(was.bad, f) {
			ps.notifyPod(o, InvalidAddress, "The address is ignored: "+f.String()+".")
		}
	}
	if was.addrs != o.addrs {
		ps.reportIgnored(o)
	}
}

func (ps *pods) reportIgnored(o *podFacts) {
	for _, a := range o.addresses() {
		if err := ps.reserved.unusable(a); err != nil {
			ps.notifyPod(o, InvalidAddress, "The address is ignored: "+err.Error()+".")
		}
	}
}

// reportConflicts ignores addresses without a local pod.
func (ps *pods) reportConflicts(p *pod) {
	if p == nil {
		return
	}
	for _, a := range p.addresses() {
		all := ps.claims.at(a)
		if len(all) < 2 || !slices.ContainsFunc(all, func(o *pod) bool { return o.local }) {
			continue
		}
		names := make([]string, 0, len(all))
		for _, o := range all {
			names = append(names, o.name.String())
		}
		slices.Sort(names)
		ps.notifyPod(&p.podFacts, AddressConflict, fmt.Sprintf("Several pods have the address %s: %s. Until only one of them is left, a rule accepts the address only if it selects all of them.",
			a, strings.Join(names[:min(len(names), 5)], ", ")))
	}
}

func (ps *pods) notifyPod(o *podFacts, reason, message string) {
	ps.reporter.notify(Notice{Kind: "Pod", Name: o.name, UID: o.uid, Reason: reason, Message: message, Reporter: o.node == ps.nodeName})
}
