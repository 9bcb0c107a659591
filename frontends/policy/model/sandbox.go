package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// MaxSandboxes limits the sandboxes of this node.
	MaxSandboxes = 16384
	// maxSandboxID limits the lengths of the ID and the pod's UID.
	maxSandboxID = 256
	// maxSandboxLabel limits the length of a key or value.
	maxSandboxLabels = 1024
	maxSandboxLabel  = 512
)

// The API object lacks these labels of the kubelet.
const kubeletLabels = "io.kubernetes.pod."

// Sandbox is a pod of this node as the container runtime knows it.
type Sandbox struct {
	// ID is the runtime's name; a recreated sandbox gets another ID.
	ID     string
	UID    types.UID
	Name   types.NamespacedName
	Labels map[string]string
	// Addresses are empty in the host's network.
	Addresses []string
}

// SandboxObject is the immutable, parsed form of a Sandbox.
type SandboxObject struct {
	id  string
	pod PodObject
}

// ParseSandbox ignores invalid addresses; other invalid parts are an error.
func ParseSandbox(s *Sandbox) (*SandboxObject, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("parse sandbox %.64q of pod %.64q: %w", s.ID, s.Name, err)
	}
	labels := make(map[string]string, len(s.Labels))
	for k, v := range s.Labels {
		if !strings.HasPrefix(k, kubeletLabels) {
			labels[k] = v
		}
	}
	out := &SandboxObject{id: strings.Clone(s.ID), pod: PodObject{podFacts: podFacts{
		name: types.NamespacedName{Namespace: intern(s.Name.Namespace), Name: strings.Clone(s.Name.Name)},
		uid:  types.UID(strings.Clone(string(s.UID))),
		// The age is unknown, so other pods own a shared address.
		created: math.MaxInt64,
	}, labels: parseLabels(labels)}}
	out.pod.setAddresses("ips", s.Addresses)
	return out, nil
}

func (s *Sandbox) validate() error {
	var errs []error
	if s.ID == "" || len(s.ID) > maxSandboxID {
		errs = append(errs, fmt.Errorf("the ID has %d bytes, not 1 to %d", len(s.ID), maxSandboxID))
	}
	if s.UID == "" || len(s.UID) > maxSandboxID || strings.Contains(string(s.UID), "/") {
		errs = append(errs, fmt.Errorf("the UID is not one of 1 to %d bytes without a slash", maxSandboxID))
	}
	if len(validation.IsDNS1123Label(s.Name.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(s.Name.Name)) > 0 {
		errs = append(errs, errors.New("the name is not that of a pod"))
	}
	if len(s.Labels) > maxSandboxLabels {
		errs = append(errs, fmt.Errorf("it has %d labels, more than %d", len(s.Labels), maxSandboxLabels))
	}
	for k, v := range s.Labels {
		if len(k) > maxSandboxLabel || len(v) > maxSandboxLabel {
			errs = append(errs, fmt.Errorf("the key or value of label %.64q is longer than %d bytes", k, maxSandboxLabel))
			break
		}
	}
	return errors.Join(errs...)
}

// A sandbox counts only for addresses that the local Pod of the same name lacks.
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
func (m *Model) SetSandbox(o *SandboxObject) {
	m.stats.SandboxEvents++
	m.setSandbox(o)
}

// DeleteSandbox removes the sandbox with an ID.
func (m *Model) DeleteSandbox(id string) {
	m.stats.SandboxEvents++
	m.deleteSandbox(id)
}

// SetSandboxes replaces all sandboxes.
func (m *Model) SetSandboxes(all []*SandboxObject) {
	m.stats.SandboxEvents++
	keep := make(map[string]bool, len(all))
	for _, o := range all {
		keep[o.id] = true
	}
	var gone []string
	for id := range m.sandboxes.byID {
		if !keep[id] {
			gone = append(gone, id)
		}
	}
	for _, id := range gone {
		m.deleteSandbox(id)
	}
	for _, o := range all {
		m.setSandbox(o)
	}
}

func (m *Model) setSandbox(o *SandboxObject) {
	o.pod.node = m.cfg.NodeName
	was := m.sandboxes.byID[o.id]
	if was != nil && was.pod.equal(&o.pod) {
		return
	}
	m.reportPod(&o.pod.podFacts, &cmp.Or(was, &SandboxObject{}).pod.podFacts)
	m.deleteSandbox(o.id)
	if o.pod.absent() {
		return
	}
	if len(m.sandboxes.byID) >= MaxSandboxes {
		m.cfg.Logger.Error("too many sandboxes: the pod is not known before the API reports it",
			"namespace", o.pod.name.Namespace, "name", o.pod.name.Name, "sandboxes", MaxSandboxes)
		return
	}
	name := o.pod.name
	m.discountSandboxes(name)
	m.sandboxes.byID[o.id] = o
	m.sandboxes.byPod[name] = append(m.sandboxes.byPod[name], o)
	slices.SortFunc(m.sandboxes.byPod[name], func(a, b *SandboxObject) int { return cmp.Compare(a.id, b.id) })
	m.countSandboxes(name)
}

func (m *Model) deleteSandbox(id string) {
	o := m.sandboxes.byID[id]
	if o == nil {
		return
	}
	name := o.pod.name
	m.discountSandboxes(name)
	delete(m.sandboxes.byID, id)
	rest := slices.DeleteFunc(m.sandboxes.byPod[name], func(p *SandboxObject) bool { return p == o })
	if len(rest) == 0 {
		delete(m.sandboxes.byPod, name)
		return
	}
	m.sandboxes.byPod[name] = rest
	m.countSandboxes(name)
}

// change stores or removes a Pod. Meanwhile, sandboxes with its name or UID do not count.
func (m *Model) aroundPod(name types.NamespacedName, uid types.UID, change func()) {
	if len(m.sandboxes.byID) == 0 {
		change()
		return
	}
	names := []types.NamespacedName{name}
	if p := m.locals[uid]; p != nil && p.sandbox && p.name != name {
		names = append(names, p.name)
	}
	for _, n := range names {
		m.discountSandboxes(n)
	}
	change()
	for _, n := range names {
		m.countSandboxes(n)
	}
}

func (m *Model) discountSandboxes(name types.NamespacedName) {
	for _, key := range m.sandboxes.counted[name] {
		m.replacePod(m.namespaces[name.Namespace].pods[key], nil)
	}
	delete(m.sandboxes.counted, name)
}

func (m *Model) countSandboxes(name types.NamespacedName) {
	var taken []netip.Addr
	if n := m.namespaces[name.Namespace]; n != nil {
		if p := n.pods[name.Name]; p != nil && p.local {
			taken = slices.Clone(p.podFacts.addresses())
		}
	}
	for _, o := range m.sandboxes.byPod[name] {
		object := o.pod
		object.addrs = [2]netip.Addr{}
		copy(object.addrs[:], slices.DeleteFunc(slices.Clone(o.pod.addresses()), func(a netip.Addr) bool { return slices.Contains(taken, a) }))
		if object.absent() {
			continue
		}
		taken = append(taken, object.addresses()...)
		// The Pod has the same UID, so its arrival makes no difference.
		if m.locals[object.uid] != nil {
			object.uid = types.UID("/sandbox/" + o.id)
		}
		p := m.newPod(&object)
		p.sandbox = true
		m.replacePod(nil, p)
		m.sandboxes.counted[name] = append(m.sandboxes.counted[name], p.key())
	}
}
