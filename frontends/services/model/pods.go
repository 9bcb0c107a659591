package model

import (
	"net/netip"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodState is what the kubelet says of a pod, from best to worst.
type PodState uint8

const (
	// PodReady is also the state of unknown pods: the API decides.
	PodReady PodState = iota
	// PodServing is ready and being deleted.
	PodServing
	PodNotReady
	// PodStopping is not ready and being deleted.
	PodStopping
	// PodGone has ended for ever. Its Service may even publish pods that are not ready.
	PodGone
)

var podStateTexts = [...]string{PodServing: "being deleted", PodNotReady: "not ready", PodStopping: "being deleted and not ready", PodGone: "gone"}

// String returns the state, or "" for PodReady.
func (s PodState) String() string { return podStateTexts[s] }

// PodID identifies a pod. An EndpointSlice may lack the UID.
type PodID struct {
	Key
	UID types.UID
}

// Pods are the pods that the kubelet does not call ready, and the slices with endpoints of this node.
type Pods struct {
	model *Model
	// by UID, and by name without UID
	of map[PodID]PodState
	// by the pod's name
	slices map[Key]map[*slice]struct{}
	// endpoints that only the kubelet keeps from a better state
	heldOut int
}

// target is an endpoint on this node with its pod.
type target struct {
	// offset of the flags in slice.endpoints
	at int
	// as in the EndpointSlice
	api flags
	pod PodID
}

// parseTarget returns nil without a pod.
func parseTarget(e *discoveryv1.Endpoint) *PodID {
	ref := e.TargetRef
	if ref == nil || ref.Kind != "Pod" || ref.Name == "" {
		return nil
	}
	return &PodID{Key{Namespace: strings.Clone(ref.Namespace), Name: strings.Clone(ref.Name)}, types.UID(strings.Clone(string(ref.UID)))}
}

// Pods returns what the kubelet says.
func (m *Model) Pods() *Pods { return &m.pods }

// Set stores the kubelet's last word about a pod.
func (p *Pods) Set(pod PodID, s PodState) {
	p.put(pod, s)
	p.changed(pod.Key)
}

func (p *Pods) put(pod PodID, s PodState) {
	for _, id := range []PodID{pod, {Key: pod.Key}} {
		if p.of[id] = s; s == PodReady {
			delete(p.of, id)
		}
	}
}

// SetAll replaces the kubelet's words about all pods. Without pods the API decides alone.
func (p *Pods) SetAll(all map[PodID]PodState) {
	was := p.of
	p.of = make(map[PodID]PodState)
	for pod, s := range all {
		p.put(pod, s)
	}
	for _, list := range []map[PodID]PodState{was, p.of} {
		for id := range list {
			if was[id] != p.of[id] {
				p.changed(id.Key)
			}
		}
	}
}

// HeldOut returns the number of endpoints that the kubelet keeps from a better state in the API.
func (p *Pods) HeldOut() int { return p.heldOut }

func (p *Pods) changed(name Key) {
	for s := range p.slices[name] {
		p.judge(s)
	}
}

// judge brings a stored slice up to date with pods and Service.
func (p *Pods) judge(s *slice) {
	was := *s
	p.model.stats.Work += uint64(len(s.targets))
	if !p.apply(s) {
		return
	}
	p.heldOut += s.heldOut() - was.heldOut()
	p.model.lists.update(s.of, &was, s)
	p.model.dirty[s.of] = struct{}{}
}

func (p *Pods) apply(s *slice) bool {
	var b []byte
	publish := s.of.parsed != nil && s.of.parsed.publishNotReady
	for i := range s.targets {
		t := &s.targets[i]
		f := p.of[t.pod].limit(t.api, publish)
		if byte(f) == s.endpoints[t.at] {
			continue
		}
		if b == nil {
			b = []byte(s.endpoints)
		}
		b[t.at] = byte(f)
	}
	if b == nil {
		return false
	}
	s.endpoints = string(b)
	return true
}

// limit never returns a better state than the API's. Its rules are those of the EndpointSlice controller.
func (s PodState) limit(api flags, publishNotReady bool) flags {
	of := unusable
	switch {
	case s == PodReady, publishNotReady && s != PodGone:
		return api
	case s == PodServing:
		of = leaving
	}
	if s != PodNotReady {
		api |= terminating
	}
	return api&^(3<<stateBits) | flags(max(of, api.state()))<<stateBits
}

func (s *slice) heldOut() (n int) {
	if s == nil {
		return 0
	}
	for i := range s.targets {
		if t := &s.targets[i]; byte(t.api) != s.endpoints[t.at] {
			n++
		}
	}
	return n
}

// replace follows the targets of a Service's slice. Either may be nil.
func (p *Pods) replace(was, now *slice) {
	p.heldOut += now.heldOut() - was.heldOut()
	if was != nil {
		for i := range was.targets {
			name := was.targets[i].pod.Key
			if delete(p.slices[name], was); len(p.slices[name]) == 0 {
				delete(p.slices, name)
			}
		}
	}
	if now != nil {
		for i := range now.targets {
			name := now.targets[i].pod.Key
			if p.slices[name] == nil {
				p.slices[name] = make(map[*slice]struct{})
			}
			p.slices[name][now] = struct{}{}
		}
	}
}

func (p *Pods) explain(r *record, all []Candidate) {
	for s := r.slices; s != nil; s = s.next {
		for i := range s.targets {
			t := &s.targets[i]
			if byte(t.api) == s.endpoints[t.at] {
				continue
			}
			addr, _ := netip.AddrFromSlice([]byte(s.endpoints[t.at-addrBytes[s.family] : t.at]))
			for j := range all {
				if c := &all[j]; c.Addr.Addr() == addr && (c.Excluded == NotReady || c.Excluded == Terminating) {
					c.Kubelet = p.of[t.pod].String()
				}
			}
		}
	}
}
