package model

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

type pod struct {
	podFacts
	namespace *namespace
	labels    *sharedList[label]
	ports     *sharedList[namedPort]
	local     bool
	// Reported by the container runtime, not the API.
	sandbox bool
	ignored uint8 // a bit for each of addrs that a pod cannot have
}

// key is the pod's name, or unique for a sandbox.
func (p *pod) key() string {
	if p.sandbox {
		return "/" + string(p.uid)
	}
	return p.name.Name
}

func (p *pod) addresses() []netip.Addr {
	if p.ignored == 0 {
		return p.podFacts.addresses()
	}
	var out []netip.Addr
	for i, a := range p.podFacts.addresses() {
		if p.ignored&(1<<i) == 0 {
			out = append(out, a)
		}
	}
	return out
}

func older(a, b *pod) int {
	return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.uid, b.uid))
}

type claims struct {
	one     map[netip.Addr]*pod
	several map[netip.Addr][]*pod // shared addresses
	buffer  [1]*pod               // the result of claimants for a single pod
}

func (c *claims) add(a netip.Addr, p *pod) {
	if all := c.several[a]; all != nil {
		c.several[a] = append(all, p)
		return
	}
	first := c.one[a]
	if first == nil {
		c.one[a] = p
		return
	}
	delete(c.one, a)
	c.several[a] = []*pod{first, p}
}

func (c *claims) remove(a netip.Addr, p *pod) {
	all := c.several[a]
	if all == nil {
		delete(c.one, a)
		return
	}
	all = slices.DeleteFunc(all, func(o *pod) bool { return o == p })
	if len(all) > 1 {
		c.several[a] = all
		return
	}
	delete(c.several, a)
	c.one[a] = all[0]
}

// The result is valid until the next call.
func (m *Model) claimants(a netip.Addr) []*pod {
	if p := m.claims.one[a]; p != nil {
		m.claims.buffer[0] = p
		return m.claims.buffer[:]
	}
	return m.claims.several[a]
}

func (m *Model) newPod(o *PodObject) *pod {
	p := &pod{
		podFacts: o.podFacts, namespace: m.namespace(o.name.Namespace), local: o.node == m.cfg.NodeName,
		labels: m.labelLists.use(o.labels), ports: m.portLists.use(o.ports),
	}
	m.checkAddresses(p)
	return p
}

func (p *pod) is(o *PodObject) bool {
	return p.podFacts.equal(&o.podFacts) && slices.Equal(p.labels.values, o.labels) && slices.Equal(p.ports.values, o.ports)
}

// SetPod stores a Pod.
func (m *Model) SetPod(o *PodObject) {
	m.stats.PodEvents++
	n := m.namespaces[o.name.Namespace]
	var was *pod
	if n != nil {
		was = n.pods[o.name.Name]
	}
	if o.node == m.cfg.NodeName {
		m.reportPod(&o.podFacts, &cmp.Or(was, &pod{}).podFacts)
	}
	if o.absent() {
		m.aroundPod(o.name, "", func() { m.replacePod(was, nil) })
		return
	}
	if was != nil && was.is(o) {
		return
	}
	m.aroundPod(o.name, o.uid, func() {
		now := m.newPod(o)
		if other := m.locals[o.uid]; now.local && other != nil && other != was {
			// Pods of manifests may share a UID.
			now.uid = types.UID(string(o.uid) + "/" + o.name.String())
		}
		m.replacePod(was, now)
	})
}

// DeletePod removes a Pod.
func (m *Model) DeletePod(name types.NamespacedName) {
	m.stats.PodEvents++
	if n := m.namespaces[name.Namespace]; n != nil && n.pods[name.Name] != nil {
		m.aroundPod(name, "", func() { m.replacePod(n.pods[name.Name], nil) })
	}
}

// Either pod may be nil.
func (m *Model) replacePod(was, now *pod) {
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
		m.noteMembers(a, false, nil)
		m.touchAddress(a)
	}
	m.removePod(was)
	m.addPod(now)
	for _, a := range addresses {
		m.noteMembers(a, true, nil)
		m.touchAddress(a)
	}
	m.reportConflicts(now)
	if was != nil {
		if was.local {
			m.dropIndex(was.namespace)
		}
		m.labelLists.release(was.labels)
		m.portLists.release(was.ports)
		m.forgetNamespace(was.namespace)
	}
}

func (m *Model) removePod(p *pod) {
	if p == nil {
		return
	}
	delete(p.namespace.pods, p.key())
	p.namespace.byLabel.remove(p)
	for _, a := range p.addresses() {
		m.claims.remove(a, p)
	}
	m.stats.Pods--
	if p.local {
		delete(m.locals, p.uid)
		m.dirtyPods[p.uid] = struct{}{}
	}
}

func (m *Model) addPod(p *pod) {
	if p == nil {
		return
	}
	p.namespace.pods[p.key()] = p
	p.namespace.byLabel.add(p)
	for _, a := range p.addresses() {
		m.claims.add(a, p)
	}
	m.stats.Pods++
	if p.local {
		m.locals[p.uid] = p
		m.dirtyPods[p.uid] = struct{}{}
	}
}

// A nil only means all sets.
func (m *Model) noteMembers(a netip.Addr, added bool, only func(*set) bool) {
	claimants := m.claimants(a)
	m.visit++
	for _, p := range claimants {
		m.setsOf(p, func(s *set) {
			if s.visit == m.visit || only != nil && !only(s) {
				return
			}
			s.visit = m.visit
			members := m.membersAt(s, a, claimants)
			for _, member := range members {
				s.note(member, added)
			}
			if len(members) > 0 {
				m.dirtySets[s] = struct{}{}
			}
		})
	}
}

func (m *Model) setsOf(p *pod, f func(*set)) {
	p.namespace.sets.each(p.labels.values, f)
	m.clusterSets.each(p.namespace.labels, p.labels.values, f)
}

// touchAddress also marks the pods at other addresses on the same interface.
func (m *Model) touchAddress(a netip.Addr) {
	m.touchClaimants(a)
	for _, b := range m.links.at[m.links.of[a]] {
		m.touchClaimants(b)
	}
}

func (m *Model) touchClaimants(a netip.Addr) {
	for _, p := range m.claimants(a) {
		if p.local {
			m.dirtyPods[p.uid] = struct{}{}
		}
	}
}

// touchPod also marks the pods that share an address with p.
func (m *Model) touchPod(p *pod) {
	m.dirtyPods[p.uid] = struct{}{}
	for _, a := range p.addresses() {
		m.touchAddress(a)
	}
}

func (m *Model) checkAddresses(p *pod) {
	p.ignored = m.ignored(&p.podFacts)
}

func (m *Model) ignored(o *podFacts) (bits uint8) {
	for i, a := range o.addresses() {
		if m.unusable(a) != nil {
			bits |= 1 << i
		}
	}
	return bits
}

// reclaim checks all pods after a change of the impossible addresses.
func (m *Model) reclaim() {
	for _, n := range m.namespaces {
		for _, p := range n.pods {
			if m.ignored(&p.podFacts) == p.ignored {
				continue
			}
			now := *p
			now.labels.uses++
			now.ports.uses++
			m.checkAddresses(&now)
			if now.local {
				m.reportIgnored(&now.podFacts)
			}
			m.replacePod(p, &now)
		}
	}
}

func (m *Model) reportPod(o, was *podFacts) {
	if was.equal(o) {
		return
	}
	m.logFindings("Pod", o.name, was.bad, o.bad)
	for _, f := range o.bad {
		if !slices.Contains(was.bad, f) {
			m.notifyPod(o, InvalidAddress, "The address is ignored: "+f.String()+".")
		}
	}
	if was.addrs != o.addrs {
		m.reportIgnored(o)
	}
}

func (m *Model) reportIgnored(o *podFacts) {
	for _, a := range o.addresses() {
		if err := m.unusable(a); err != nil {
			m.notifyPod(o, InvalidAddress, "The address is ignored: "+err.Error()+".")
		}
	}
}

// reportConflicts ignores addresses without a local pod.
func (m *Model) reportConflicts(p *pod) {
	if p == nil {
		return
	}
	for _, a := range p.addresses() {
		all := m.claimants(a)
		if len(all) < 2 || !slices.ContainsFunc(all, func(o *pod) bool { return o.local }) {
			continue
		}
		names := make([]string, 0, len(all))
		for _, o := range all {
			names = append(names, o.name.String())
		}
		slices.Sort(names)
		m.notifyPod(&p.podFacts, AddressConflict, fmt.Sprintf("Several pods have the address %s: %s. Until only one of them is left, a rule accepts the address only if it selects all of them.",
			a, strings.Join(names[:min(len(names), 5)], ", ")))
	}
}

func (m *Model) notifyPod(o *podFacts, reason, message string) {
	m.cfg.Notify(Notice{Kind: "Pod", Name: o.name, UID: o.uid, Reason: reason, Message: message, Reporter: o.node == m.cfg.NodeName})
}
